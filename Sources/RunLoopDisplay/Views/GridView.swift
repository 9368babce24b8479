// SPDX-License-Identifier: Apache-2.0

/// A view that lays out views in rows and columns.
///
/// Columns are as wide as the widest of their views and rows as high as the highest, by ``View/sizeThatFits(_:)``.
/// Flexible columns and rows share the remaining space equally. If there is too little space, the first columns and
/// rows take precedence. Hidden views keep their cells, and those that were removed leave theirs empty.
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
  /// The number of cells between two columns, where negative values count as zero.
  public var columnSpacing: Int {
    didSet { if columnSpacing != oldValue { setNeedsLayout() } }
  }
  /// The number of cells between two rows, where negative values count as zero.
  public var rowSpacing: Int {
    didSet { if rowSpacing != oldValue { setNeedsLayout() } }
  }
  /// The margins around the views, none by default.
  public var layoutMargins = Insets() {
    didSet { if layoutMargins != oldValue { setNeedsLayout() } }
  }
  /// The indexes of the columns that share the remaining width instead of being sized to fit, none by default.
  public var flexibleColumns: Set<Int> = [] {
    didSet { if flexibleColumns != oldValue { setNeedsLayout() } }
  }
  private var rows: [(views: [View], isFlexible: Bool)] = []

  /// Creates an empty grid.
  public init(columnSpacing: Int = 0, rowSpacing: Int = 0, frame: Rect = .zero) {
    self.columnSpacing = columnSpacing
    self.rowSpacing = rowSpacing
    super.init(frame: frame)
  }

  override open var drawsContents: Bool { false }
  override final var arrangesBySize: Bool { true }

  /// The number of rows.
  public final var rowCount: Int { rows.count }

  /// Adds a row at the bottom.
  ///
  /// - Parameters:
  ///   - views: The views of the row, from the first column on. A view that is already in the grid is moved.
  ///   - isFlexible: Whether the row gets a share of the remaining height, instead of being sized to fit.
  public final func addRow(with views: [View], isFlexible: Bool = false) {
    for row in rows.indices { rows[row].views.removeAll { view in views.contains { $0 === view } } }
    rows.append((views, isFlexible))
    for view in views { addSubview(view) }
    setNeedsLayout()
  }

  /// Removes a row and its views, if there is such a row.
  public final func removeRow(at index: Int) {
    guard rows.indices.contains(index) else { return }
    for view in rows.remove(at: index).views where view.superview === self { view.removeFromSuperview() }
    setNeedsLayout()
  }

  override open func layoutSubviews() {
    let margins = layoutMargins.clamped
    let room = margins.within(bounds.size)
    let sizes = measure(in: room, without: flexibleColumns)
    let widths = Arrangement.lengths(widths(sizes, without: flexibleColumns), spacing: columnSpacing, room: room.width)
    let heights = Arrangement.lengths(
      zip(rows, sizes).map { $0.isFlexible ? nil : height(of: $0.views, $1, widths, in: room) }, spacing: rowSpacing,
      room: room.height)
    var y = bounds.minY + margins.top
    for (row, height) in zip(rows, heights) {
      var x = bounds.minX + margins.left
      for (view, width) in zip(row.views, widths) {
        if view.superview === self { view.arrange(in: Rect(x: x, y: y, width: width, height: height)) }
        x += width + columnSpacing.clampedLength
      }
      y += height + rowSpacing.clampedLength
    }
  }

  /// Returns the sizes of the views of each row, or nil in flexible columns, whose width is not known yet.
  private func measure(in room: Size, without flexible: Set<Int>) -> [[Size?]] {
    rows.map { row in
      row.views.enumerated().map { flexible.contains($0) ? nil : $1.superview === self ? $1.sizeThatFits(room) : .zero }
    }
  }

  private func widths(_ sizes: [[Size?]], without flexible: Set<Int>) -> [Int?] {
    (0..<(sizes.map(\.count).max() ?? 0)).map { column in
      guard !flexible.contains(column) else { return nil }
      return sizes.reduce(0) { max($0, column < $1.count ? $1[column]?.width.clampedLength ?? 0 : 0) }
    }
  }

  /// Returns the height of a row, measuring only those views again whose column is too narrow for them.
  private func height(of views: [View], _ sizes: [Size?], _ widths: [Int], in room: Size) -> Int {
    zip(zip(views, sizes), widths).reduce(0) { highest, cell in
      let ((view, size), width) = cell
      let known = size.flatMap { $0.width <= width ? $0 : nil }
      return max(highest, (known ?? view.sizeThatFits(Size(width: width, height: room.height))).height.clampedLength)
    }
  }

  /// The size that fits all columns and rows, including flexible ones.
  override open func sizeThatFits(_ size: Size) -> Size {
    let margins = layoutMargins.clamped
    let room = margins.within(size)
    let sizes = measure(in: room, without: [])
    let widths = widths(sizes, without: []).map { $0 ?? 0 }
    let heights = zip(rows, sizes).map { height(of: $0.views, $1, widths, in: room) }
    return margins.around(
      Size(
        width: widths.reduce(columnSpacing.clampedLength * max(0, widths.count - 1), +),
        height: heights.reduce(rowSpacing.clampedLength * max(0, heights.count - 1), +)))
  }
}
