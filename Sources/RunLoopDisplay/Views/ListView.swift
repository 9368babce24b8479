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
  /// The rows that exist, from the first that is visible on.
  private var rows: [ListRow] = []
  private var firstIndex = 0
  /// Rows that are not needed any more, until the layout is over.
  private var spare: [ListRow] = []
  private var needsReload = false
  /// Whether rows are being provided.
  private var isProviding = false
  /// Whether a layout was asked for while rows were being provided.
  private var needsAnotherLayout = false

  /// Makes an empty list.
  public init(frame: Rect = .zero, provider: @escaping Provider) {
    self.provider = provider
    super.init(frame: frame)
  }

  /// The number of rows; a negative number counts as none, and one above ``maximumCount`` as that.
  public var rowCount = 0 {
    didSet {
      rowCount = min(max(0, rowCount), Self.maximumCount)
      guard rowCount != oldValue else { return }
      contentSize = Size(width: contentSize.width, height: rowCount)
      if let selectedRow, selectedRow >= rowCount { self.selectedRow = rowCount == 0 ? nil : rowCount - 1 }
      setNeedsLayout()
    }
  }

  /// The number of the selected row; nil if none is.
  public var selectedRow: Int? {
    didSet {
      if let row = selectedRow, !(0..<rowCount).contains(row) { selectedRow = oldValue }
      guard selectedRow != oldValue else { return }
      if let oldValue { visibleRow(oldValue)?.isSelected = false }
      if let selectedRow { visibleRow(selectedRow)?.isSelected = true }
      guard let selectionDidChange else { return }
      DisplayCallOut.note(closure: SelectionHandler(call: selectionDidChange))
      selectionDidChange(selectedRow)
    }
  }

  /// Called when another row was selected.
  public var selectionDidChange: ((Int?) -> Void)?

  /// The numbers of the rows that exist.
  public var visibleRows: Range<Int> { firstIndex..<firstIndex + rows.count }

  /// The row with a number, if it exists.
  public func visibleRow(_ index: Int) -> ListRow? {
    visibleRows.contains(index) ? rows[index - firstIndex] : nil
  }

  /// Makes the provider fill every visible row again, in the layout of this turn.
  public func reload() {
    needsReload = true
    setNeedsLayout()
  }

  /// Scrolls as little as needed for a row to be visible.
  public func scrollToRow(_ index: Int) {
    let index = min(max(0, index), Self.maximumCount)
    if index < contentOffset.y { contentOffset.y = index }
    if index >= contentOffset.y + bounds.size.height { contentOffset.y = index - bounds.size.height + 1 }
  }

  override open func layoutSubviews() {
    super.layoutSubviews()
    // The provider has the list laid out: its rows are not complete.
    guard !isProviding else { return needsAnotherLayout = true }
    isProviding = true
    provideRows()
    isProviding = false
    guard needsAnotherLayout else { return }
    needsAnotherLayout = false
    setNeedsLayout()
  }

  /// Provides the rows that are missing, and takes those away that are not needed.
  private func provideRows() {
    let first = min(contentOffset.y, rowCount)
    let wanted = first..<min(first + bounds.size.height, rowCount)
    takeSpares(outside: needsReload ? 0..<0 : wanted)
    needsReload = false
    if rows.isEmpty { firstIndex = wanted.lowerBound }
    var front = firstIndex
    while front > wanted.lowerBound {
      front -= 1
      rows.insert(provide(front), at: 0)
    }
    firstIndex = front
    while firstIndex + rows.count < wanted.upperBound { rows.append(provide(firstIndex + rows.count)) }
    for row in spare { row.removeFromSuperview() }
    spare.removeAll(keepingCapacity: true)
    for (offset, row) in rows.enumerated() {
      row.frame = Rect(x: 0, y: firstIndex + offset, width: bounds.size.width + contentOffset.x, height: 1)
    }
  }

  /// Takes the rows out that are not wanted any more; they stay subviews until it is known that nobody needs them.
  private func takeSpares(outside wanted: Range<Int>) {
    while let row = rows.last, !wanted.contains(firstIndex + rows.count - 1) {
      spare.append(row)
      rows.removeLast()
    }
    var count = 0
    while count < rows.count, !wanted.contains(firstIndex + count) {
      spare.append(rows[count])
      count += 1
    }
    rows.removeFirst(count)
    firstIndex += count
  }

  private func provide(_ index: Int) -> ListRow {
    let reused = spare.popLast()
    DisplayCallOut.note(closure: CalledProvider(call: provider))
    let row = provider(index, reused)
    if let reused, reused !== row { reused.removeFromSuperview() }
    row.index = index
    row.isSelected = index == selectedRow
    if row.superview !== self { addSubview(row) }
    return row
  }

  override open func keyPressed(_ key: KeyEvent) {
    guard key.modifiers.isEmpty, rowCount > 0 else { return super.keyPressed(key) }
    let page = max(1, bounds.size.height)
    switch key.key {
    case .up: select(selectedRow.map { $0 - 1 } ?? 0)
    case .down: select(selectedRow.map { $0 + 1 } ?? 0)
    case .pageUp: turnPage(by: -page)
    case .pageDown: turnPage(by: page)
    case .home: select(0)
    case .end: select(rowCount - 1)
    default: super.keyPressed(key)
    }
  }

  /// Moves what is seen and the selection by a page.
  private func turnPage(by rows: Int) {
    contentOffset.y += rows
    select((selectedRow ?? 0) + rows)
  }

  private func select(_ index: Int) {
    let index = min(max(0, index), rowCount - 1)
    selectedRow = index
    scrollToRow(index)
  }

  override open func touchesBegan(_ touch: Touch) {
    super.touchesBegan(touch)
    guard touch.button == .left else { return }
    let row = touch.location(in: self).y
    if (0..<rowCount).contains(row) { selectedRow = row }
  }
}

// What names the user's closures in records.

private struct SelectionHandler {
  let call: (Int?) -> Void
}

private struct CalledProvider {
  let call: ListView.Provider
}
