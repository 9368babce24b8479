// SPDX-License-Identifier: Apache-2.0

/// Lays views out in rows and columns.
///
/// A column is as wide as the widest of its views needs, by ``View/sizeThatFits(_:)``, and a row as high as the
/// highest. What is left goes to the flexible columns and rows, in equal parts. Where there is too little room, the
/// first columns and rows have what they need. A hidden view keeps its place.
///
/// ```Swift
/// let grid = GridView(columnSpacing: 1)
/// grid.flexibleColumns = [1]
/// grid.addRow(with: [Label("Load"), loadView])
/// grid.addRow(with: [Label("Memory"), memoryView])
/// ```
///
/// The corresponding class of AppKit is `NSGridView`.
@MainActor
open class GridView: View {
  /// The cells between two columns; less than zero counts as zero.
  public var columnSpacing: Int {
    didSet { if columnSpacing != oldValue { setNeedsLayout() } }
  }
  /// The cells between two rows; less than zero counts as zero.
  public var rowSpacing: Int {
    didSet { if rowSpacing != oldValue { setNeedsLayout() } }
  }
  /// The cells that are left free around the views.
  public var layoutMargins = Insets() {
    didSet { if layoutMargins != oldValue { setNeedsLayout() } }
  }
  /// The numbers of the columns that share what the others leave, instead of what they need.
  public var flexibleColumns: Set<Int> = [] {
    didSet { if flexibleColumns != oldValue { setNeedsLayout() } }
  }
  private var rows: [(views: [View], isFlexible: Bool)] = []

  /// Makes an empty grid.
  public init(columnSpacing: Int = 0, rowSpacing: Int = 0, frame: Rect = .zero) {
    self.columnSpacing = columnSpacing
    self.rowSpacing = rowSpacing
    super.init(frame: frame)
  }

  override open var drawsContents: Bool { false }

  /// The number of rows.
  public final var rowCount: Int { rows.count }

  /// Adds a row below the others.
  ///
  /// - Parameters:
  ///   - views: The views of the row, from the first column on. A view that is in the grid already leaves its place.
  ///   - isFlexible: Whether the row gets a part of the height that the others leave, instead of what it needs.
  public final func addRow(with views: [View], isFlexible: Bool = false) {
    for row in rows.indices { rows[row].views.removeAll { view in views.contains { $0 === view } } }
    rows.append((views, isFlexible))
    for view in views { addSubview(view) }
    setNeedsLayout()
  }

  /// Takes a row and its views out; a number that no row has changes nothing.
  public final func removeRow(at index: Int) {
    guard rows.indices.contains(index) else { return }
    for view in rows.remove(at: index).views where view.superview === self { view.removeFromSuperview() }
    setNeedsLayout()
  }

  override open func layoutSubviews() {
    let margins = layoutMargins.clamped
    let room = margins.within(bounds.size)
    let widths = Arrangement.lengths(wantedWidths(in: room), spacing: columnSpacing, room: room.width)
    let heights = Arrangement.lengths(wantedHeights(widths, in: room), spacing: rowSpacing, room: room.height)
    var y = bounds.minY + margins.top
    for (row, height) in zip(rows, heights) {
      var x = bounds.minX + margins.left
      for (view, width) in zip(row.views, widths) {
        if view.superview === self { view.frame = Rect(x: x, y: y, width: width, height: height) }
        x += width + max(0, columnSpacing)
      }
      y += height + max(0, rowSpacing)
    }
  }

  private func wantedWidths(in room: Size) -> [Int?] {
    (0..<(rows.map(\.views.count).max() ?? 0)).map { column in
      guard !flexibleColumns.contains(column) else { return nil }
      return rows.map { column < $0.views.count ? $0.views[column].sizeThatFits(room).width : 0 }.max()
    }
  }

  private func wantedHeights(_ widths: [Int], in room: Size) -> [Int?] {
    rows.map { row in
      guard !row.isFlexible else { return nil }
      return zip(row.views, widths).map { $0.sizeThatFits(Size(width: $1, height: room.height)).height }.max() ?? 0
    }
  }

  /// The size that the columns and rows need, flexible ones included.
  override open func sizeThatFits(_ size: Size) -> Size {
    let margins = layoutMargins.clamped
    let room = margins.within(size)
    let count = rows.map(\.views.count).max() ?? 0
    let widths = (0..<count).map { column in
      rows.map { column < $0.views.count ? $0.views[column].sizeThatFits(room).width : 0 }.max() ?? 0
    }
    let heights = rows.map { row in
      zip(row.views, widths).map { $0.sizeThatFits(Size(width: $1, height: room.height)).height }.max() ?? 0
    }
    return Size(
      width: widths.reduce(max(0, columnSpacing) * max(0, count - 1) + margins.left + margins.right, +),
      height: heights.reduce(max(0, rowSpacing) * max(0, rows.count - 1) + margins.top + margins.bottom, +))
  }
}
