// SPDX-License-Identifier: Apache-2.0

/// A list of any number of rows, of which only the visible ones exist as views.
///
/// A row that is scrolled out of view is passed to the provider, which can reuse it for another row.
///
/// ```Swift
/// let list = ListView { index, reused in
///   let row = reused ?? ListRow()
///   row.text = "row \(index)"
///   return row
/// }
/// list.rowCount = 1_000_000
/// ```
///
/// Rows are one cell high unless ``heightForRow`` is set. When the model changes, ``insertRows(at:)``,
/// ``deleteRows(at:)`` and ``moveRow(at:to:)`` keep the selection on its row and the visible rows in place, while
/// ``reload()`` calls the provider for all visible rows. Setting ``columns`` adds columns and a header row.
///
/// The Up, Down, PageUp, PageDown, Home and End keys move the selection, and the page keys also scroll. A click
/// selects a row, and the wheel scrolls.
///
/// The corresponding class of UIKit is `UITableView`.
@MainActor
open class ListView: ScrollView {
  /// A closure that provides a row when it becomes visible during layout.
  ///
  /// It receives the index of the row and, if available, a row that can be reused. It returns that row or another
  /// one. If it triggers a layout of the list, that layout runs as another round of the current one.
  public typealias Provider = @MainActor (_ index: Int, _ reused: ListRow?) -> ListRow

  /// The maximum number of rows in a list.
  public static let maximumCount = 1 << 29

  private let provider: Provider
  var heights = RowHeights()
  /// The existing rows, in ascending order.
  var rows: [ListRow] = []
  /// The rows that are no longer needed, which are kept for reuse until the layout is finished.
  var spare: [ListRow] = []
  private(set) final var needsReload = false
  /// Whether user code is being called for rows or heights.
  private(set) var isAsking = false
  /// Whether a layout was requested while rows were being provided.
  private var needsAnotherLayout = false
  private var header: ListHeader?
  private(set) var columnLayout = ColumnLayout()

  /// Creates an empty list.
  public init(frame: Rect = .zero, provider: @escaping Provider) {
    self.provider = provider
    super.init(frame: frame)
  }

  /// The number of rows, clamped between zero and ``maximumCount``.
  ///
  /// Setting it adds or removes rows at the end. To change rows elsewhere, use ``insertRows(at:)`` and
  /// ``deleteRows(at:)``.
  public var rowCount: Int {
    get { heights.count }
    set {
      let count = min(max(0, newValue), Self.maximumCount)
      guard count != heights.count else { return }
      let isShorter = count < heights.count
      heights.setCount(count)
      guard isShorter else { return setNeedsLayout() }
      renumber(next: count == 0 ? nil : count - 1) { $0 < count ? $0 : nil }
    }
  }

  /// Returns the height of a row, from 1 to 4,096 cells.
  ///
  /// The default is `nil`, which makes every row one cell high. The closure is called once for each row before the
  /// rows are laid out, and again after ``reload()``. If it is set, inserting or deleting rows takes time
  /// proportional to the number of rows.
  ///
  /// The corresponding function of UIKit is `tableView(_:heightForRowAt:)`.
  public var heightForRow: ((_ index: Int) -> Int)? {
    didSet {
      heights.reset(areEqual: heightForRow == nil)
      setNeedsLayout()
    }
  }

  /// The columns of the list, which show the texts in ``ListRow/texts``; none by default.
  ///
  /// If there are any columns, a row with their titles is shown at the top, unless the list is only one cell high.
  public var columns: [ListColumn] = [] {
    didSet { if columns != oldValue { columnsDidChange() } }
  }
  /// The style of the header row, bold and underlined by default.
  public var headerStyle = Style(attributes: [.bold, .underline]) {
    didSet { if headerStyle != oldValue { header?.setNeedsDisplay() } }
  }

  override final var fixedRows: Int { !columns.isEmpty && bounds.size.height > 1 ? 1 : 0 }

  /// The size of the contents, whose height is always that of the rows.
  override public var contentSize: Size {
    get { Size(width: super.contentSize.width, height: fixedRows + measuredHeights.total) }
    set { super.contentSize = newValue }
  }

  /// The index of the selected row, or `nil` if no row is selected.
  ///
  /// Setting an index without a row has no effect.
  public var selectedRow: Int? {
    get { selection }
    set {
      if let row = newValue, !(0..<rowCount).contains(row) { return }
      if newValue != selection { changeSelection(to: newValue) }
    }
  }
  private var selection: Int?
  /// The number of times that another row was selected.
  private var selectionCount = 0

  /// Selects a row.
  ///
  /// - Parameter isOther: Whether the row differs from the previous one, and not only its index.
  final func changeSelection(to row: Int?, isOther: Bool = true) {
    selection = row
    if isOther { selectionCount &+= 1 }
    let count = selectionCount
    // Each assignment may call code that selects another row or changes the rows.
    for view in spare { view.isSelected = false }
    for view in rows { view.isSelected = view.index == selection }
    // If a row has selected another one, that change was already reported.
    guard isOther, count == selectionCount, let selectionDidChange else { return }
    DisplayCallOut.note(closure: SelectionHandler(call: selectionDidChange))
    selectionDidChange(selection)
  }

  /// A closure called after another row has been selected, or `nil`, the default.
  public var selectionDidChange: ((Int?) -> Void)?

  /// The indexes of the rows that were visible at the last layout, initially empty.
  public private(set) final var visibleRows = 0..<0

  /// Returns the row at an index if it is visible.
  public func visibleRow(_ index: Int) -> ListRow? { rows.first { $0.index == index } }

  /// Makes the provider fill every visible row again in the next layout.
  public func reload() {
    needsReload = true
    heights.forget()
    setNeedsLayout()
  }

  /// Scrolls as little as possible to make a row visible, or its top if the row is higher than the list.
  public func scrollToRow(_ index: Int) {
    let heights = measuredHeights
    guard heights.known > 0 else { return }
    let index = min(max(0, index), heights.known - 1)
    let (start, end) = (heights.start(of: index), heights.start(of: index + 1))
    contentOffset.y = min(max(contentOffset.y, end - room.height), start)
  }

  /// The heights of all rows, for which user code is called if they are not known.
  final var measuredHeights: RowHeights {
    guard let heightForRow, heights.known < heights.count, !isAsking else { return heights }
    isAsking = true
    DisplayCallOut.note(closure: CalledHeight(call: heightForRow))
    while heights.known < heights.count { heights.append(heightForRow(heights.known)) }
    isAsking = false
    return heights
  }

  override open func layoutSubviews() {
    super.layoutSubviews()
    // The provider has requested a layout while the rows are incomplete.
    guard !isAsking else { return needsAnotherLayout = true }
    let heights = measuredHeights
    isAsking = true
    provideRows(heights)
    isAsking = false
    placeHeader()
    guard needsAnotherLayout else { return }
    needsAnotherLayout = false
    setNeedsLayout()
  }

  /// Provides the missing rows, and removes those that are not needed.
  private func provideRows(_ heights: RowHeights) {
    let wanted = heights.rows(from: contentOffset.y, height: room.height)
    takeSpares(outside: needsReload ? 0..<0 : wanted)
    needsReload = false
    for (place, index) in wanted.enumerated() where place >= rows.count || rows[place].index != index {
      rows.insert(provide(index), at: place)
      // The provider has changed the rows, so all of them are provided again in another round.
      if needsReload { break }
    }
    // A row may have been provided twice.
    if rows.count > wanted.count { rows.removeSubrange(wanted.count...) }
    for row in spare { row.removeFromSuperview() }
    spare.removeAll(keepingCapacity: true)
    visibleRows = wanted
    let (fixed, width) = (fixedRows, rowWidth)
    for (index, row) in zip(wanted, rows) {
      let start = heights.start(of: index)
      row.frame = Rect(x: 0, y: fixed + start, width: width, height: heights.start(of: index + 1) - start)
    }
  }

  /// The width of the rows, which excludes the scroll indicator and includes the horizontal scroll offset.
  final var rowWidth: Int { room.width + contentOffset.x }

  /// Removes rows outside a range from the visible rows.
  ///
  /// Their views remain subviews until a new row reuses them.
  private func takeSpares(outside wanted: Range<Int>) {
    while let row = rows.last, !wanted.contains(row.index) {
      spare.append(row)
      rows.removeLast()
    }
    let count = rows.firstIndex { wanted.contains($0.index) } ?? 0
    spare.append(contentsOf: rows[..<count])
    rows.removeFirst(count)
  }

  private func provide(_ index: Int) -> ListRow {
    let reused = spare.popLast()
    DisplayCallOut.note(closure: CalledProvider(call: provider))
    let row = provider(index, reused)
    if let reused, reused !== row { reused.removeFromSuperview() }
    row.index = index
    row.isSelected = index == selectedRow
    guard row.superview !== self else { return row }
    // The row is inserted below the header and the scroll indicators.
    let others = subviews.lastIndex { !($0 is ListHeader || $0 is ScrollIndicator) }
    insertSubview(row, at: others.map { $0 + 1 } ?? 0)
    return row
  }

  private func columnsDidChange() {
    columnLayout = ColumnLayout(columns, width: columnLayout.width)
    header?.setNeedsDisplay()
    for row in rows { row.setNeedsDisplay() }
    setNeedsLayout()
  }

  private func placeHeader() {
    // The columns are laid out for the full width of the contents, whatever the scroll offset.
    let width = max(room.width, clampedContents.width)
    if !columns.isEmpty, columnLayout.width != width {
      columnLayout = ColumnLayout(columns, width: width)
      header?.setNeedsDisplay()
      for row in rows { row.setNeedsDisplay() }
    }
    guard fixedRows > 0 else {
      header?.removeFromSuperview()
      return header = nil
    }
    let view = header ?? ListHeader()
    header = view
    if view.superview !== self { addSubview(view) }
    view.frame = Rect(x: 0, y: contentOffset.y, width: rowWidth, height: 1)
  }

  /// Returns the height of a row whose height is known.
  final func height(ofRow index: Int) -> Int { heights.start(of: index + 1) - heights.start(of: index) }

  /// Called after a closure has renumbered the rows, or with nil if they must be provided again.
  func rowsDidChange(_ number: ((Int) -> Int?)?) {}

  /// Makes the layout provide all rows again, when called while rows are being provided.
  final func reloadAfterAsking() {
    needsReload = true
    needsAnotherLayout = true
  }

  override open func keyPressed(_ key: KeyEvent) {
    guard key.modifiers.isEmpty, rowCount > 0 else { return super.keyPressed(key) }
    switch key.key {
    case .up: select(selectedRow.map { $0 - 1 } ?? 0)
    case .down: select(selectedRow.map { $0 + 1 } ?? 0)
    case .pageUp: turnPage(forward: false)
    case .pageDown: turnPage(forward: true)
    case .home: select(0)
    case .end: select(rowCount - 1)
    default: super.keyPressed(key)
    }
  }

  /// Moves the selection and the visible part by a page, or by one row if that is higher.
  private func turnPage(forward: Bool) {
    let heights = measuredHeights
    let distance = max(1, room.height) * (forward ? 1 : -1)
    contentOffset.y += distance
    let row = selectedRow ?? 0
    let found = heights.row(at: heights.start(of: row) + distance)
    select(forward ? max(found, row + 1) : min(found, row - 1))
  }

  private func select(_ index: Int) {
    let index = min(max(0, index), rowCount - 1)
    selectedRow = index
    scrollToRow(index)
  }

  override open func touchesBegan(_ touch: Touch) {
    super.touchesBegan(touch)
    guard touch.button == .left else { return }
    let y = touch.location(in: self).y - fixedRows
    guard y >= contentOffset.y, y < contentOffset.y + room.height else { return }
    let row = measuredHeights.row(at: y)
    if row < rowCount { selectedRow = row }
  }
}

// Wrappers that identify the user's closures in records.

private struct SelectionHandler {
  let call: (Int?) -> Void
}

private struct CalledProvider {
  let call: ListView.Provider
}

private struct CalledHeight {
  let call: (Int) -> Int
}
