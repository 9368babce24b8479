// SPDX-License-Identifier: Apache-2.0

/// A list of any number of rows, of which only the visible ones exist.
///
/// A row that is scrolled out of the list is reused for another: the provider gets it, and fills it again.
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
/// Rows are one cell high, unless ``heightForRow`` says otherwise. If rows come or go in the model,
/// ``insertRows(at:)``, ``deleteRows(at:)`` and ``moveRow(at:to:)`` keep the selection on its row and what is visible
/// in its place; ``reload()`` has everything provided again. ``columns`` make a table of the list, with a header row.
///
/// The keys Up, Down, PageUp, PageDown, Home and End move the selection, the page keys also scroll, and a click
/// selects; the wheel scrolls.
///
/// The corresponding class of UIKit is `UITableView`.
@MainActor
open class ListView: ScrollView {
  /// Called in a layout for each row that becomes visible: with the number of the row, and a row that is no longer
  /// needed.
  ///
  /// It returns that row, or another one. If it has the list laid out, that follows in another round of this layout.
  public typealias Provider = @MainActor (_ index: Int, _ reused: ListRow?) -> ListRow

  /// The largest number of rows of a list.
  public static let maximumCount = 1 << 29

  private let provider: Provider
  var heights = RowHeights()
  /// The rows that exist, in the order of their numbers.
  var rows: [ListRow] = []
  /// Rows that are not needed any more, until the layout is over.
  var spare: [ListRow] = []
  private(set) final var needsReload = false
  /// Whether the user's code is being asked for rows or heights.
  private(set) var isAsking = false
  /// Whether a layout was asked for while rows were being provided.
  private var needsAnotherLayout = false
  private var header: ListHeader?
  private(set) var columnLayout = ColumnLayout()

  /// Makes an empty list.
  public init(frame: Rect = .zero, provider: @escaping Provider) {
    self.provider = provider
    super.init(frame: frame)
  }

  /// The number of rows; a negative number counts as none, and one above ``maximumCount`` as that.
  ///
  /// Rows are added and removed at the end; see ``insertRows(at:)`` and ``deleteRows(at:)`` for other places.
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

  /// Returns the height of a row, from 1 to 4,096 cells; without it, every row is one cell high.
  ///
  /// It is called once for each row before the rows are laid out, and again after ``reload()``. With it, the time for
  /// an insertion or a deletion is proportional to the number of rows.
  ///
  /// The corresponding function of UIKit is `tableView(_:heightForRowAt:)`.
  public var heightForRow: ((_ index: Int) -> Int)? {
    didSet {
      heights.reset(areEqual: heightForRow == nil)
      setNeedsLayout()
    }
  }

  /// The columns of the list, whose texts are those of ``ListRow/texts``.
  ///
  /// If there are any, a row with their titles stays above the others, unless the list is one cell high.
  public var columns: [ListColumn] = [] {
    didSet { if columns != oldValue { columnsDidChange() } }
  }
  /// The style of the header row.
  public var headerStyle = Style(attributes: [.bold, .underline]) {
    didSet { if headerStyle != oldValue { header?.setNeedsDisplay() } }
  }

  override final var fixedRows: Int { !columns.isEmpty && bounds.size.height > 1 ? 1 : 0 }

  /// The size of the contents: the height is that of the rows, whatever is set.
  override public var contentSize: Size {
    get { Size(width: super.contentSize.width, height: fixedRows + measuredHeights.total) }
    set { super.contentSize = newValue }
  }

  /// The number of the selected row; nil if none is.
  ///
  /// Setting a number that no row has changes nothing.
  public var selectedRow: Int? {
    get { selection }
    set {
      if let row = newValue, !(0..<rowCount).contains(row) { return }
      if newValue != selection { changeSelection(to: newValue) }
    }
  }
  private var selection: Int?
  /// How often another row was selected.
  private var selectionCount = 0

  /// Selects a row.
  ///
  /// - Parameter isOther: Whether it is another row than before, and not the same with another number.
  final func changeSelection(to row: Int?, isOther: Bool = true) {
    selection = row
    if isOther { selectionCount &+= 1 }
    let count = selectionCount
    // Each of them may call code that selects another row, or changes the rows.
    for view in spare { view.isSelected = false }
    for view in rows { view.isSelected = view.index == selection }
    // A row that has selected another has reported that.
    guard isOther, count == selectionCount, let selectionDidChange else { return }
    DisplayCallOut.note(closure: SelectionHandler(call: selectionDidChange))
    selectionDidChange(selection)
  }

  /// Called when another row was selected.
  public var selectionDidChange: ((Int?) -> Void)?

  /// The numbers of the rows that were visible at the last layout.
  public private(set) final var visibleRows = 0..<0

  /// The row with a number, if it exists.
  public func visibleRow(_ index: Int) -> ListRow? { rows.first { $0.index == index } }

  /// Makes the provider fill every visible row again, in the layout of this turn.
  public func reload() {
    needsReload = true
    heights.forget()
    setNeedsLayout()
  }

  /// Scrolls as little as needed for a row to be visible; of a row that is higher than the list, the beginning is.
  public func scrollToRow(_ index: Int) {
    let heights = measuredHeights
    guard heights.known > 0 else { return }
    let index = min(max(0, index), heights.known - 1)
    let (start, end) = (heights.start(of: index), heights.start(of: index + 1))
    contentOffset.y = min(max(contentOffset.y, end - room.height), start)
  }

  /// The heights of all rows, for which the user's code is asked.
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
    // The provider has the list laid out: its rows are not complete.
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

  /// Provides the rows that are missing, and takes those away that are not needed.
  private func provideRows(_ heights: RowHeights) {
    let wanted = heights.rows(from: contentOffset.y, height: room.height)
    takeSpares(outside: needsReload ? 0..<0 : wanted)
    needsReload = false
    for (place, index) in wanted.enumerated() where place >= rows.count || rows[place].index != index {
      rows.insert(provide(index), at: place)
      // The provider has changed the rows: all of them are provided in another round.
      if needsReload { break }
    }
    // Of a row that was provided twice.
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

  /// The width of the rows: up to the scroll indicator, and as far as the list is scrolled.
  final var rowWidth: Int { room.width + contentOffset.x }

  /// Removes rows outside a range from the shown ones.
  ///
  /// Their views stay subviews until no new row reuses them.
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
    // Below the header and the scroll indicators.
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
    // Wherever the list is scrolled to.
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

  /// The height of a row whose height is known.
  final func height(ofRow index: Int) -> Int { heights.start(of: index + 1) - heights.start(of: index) }

  /// Called when rows have other numbers than before, which a closure returns; without one, each is provided again.
  func rowsDidChange(_ number: ((Int) -> Int?)?) {}

  /// Makes a layout provide rows again while rows are being provided.
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

  /// Moves what is seen and the selection by a page, or by a row that is higher.
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

// What names the user's closures in records.

private struct SelectionHandler {
  let call: (Int?) -> Void
}

private struct CalledProvider {
  let call: ListView.Provider
}

private struct CalledHeight {
  let call: (Int) -> Int
}
