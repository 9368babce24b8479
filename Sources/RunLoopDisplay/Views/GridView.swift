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
    let sizes = measure(in: room, without: flexibleColumns)
    let widths = Arrangement.lengths(widths(sizes, without: flexibleColumns), spacing: columnSpacing, room: room.width)
    let heights = Arrangement.lengths(
      zip(rows, sizes).map { $0.isFlexible ? nil : height(of: $0.views, $1, widths, in: room) }, spacing: rowSpacing,
      room: room.height)
    var y = bounds.minY + margins.top
    for (row, height) in zip(rows, heights) {
      var x = bounds.minX + margins.left
      for (view, width) in zip(row.views, widths) {
        if view.superview === self { view.frame = Rect(x: x, y: y, width: width, height: height) }
        x += width + columnSpacing.clampedLength
      }
      y += height + rowSpacing.clampedLength
    }
  }

  /// What the views of each row need; nil: the view is in a flexible column, whose width is not known yet.
  private func measure(in room: Size, without flexible: Set<Int>) -> [[Size?]] {
    rows.map { row in row.views.enumerated().map { flexible.contains($0) ? nil : $1.sizeThatFits(room) } }
  }

  private func widths(_ sizes: [[Size?]], without flexible: Set<Int>) -> [Int?] {
    (0..<(sizes.map(\.count).max() ?? 0)).map { column in
      guard !flexible.contains(column) else { return nil }
      return sizes.reduce(0) { max($0, column < $1.count ? $1[column]?.width.clampedLength ?? 0 : 0) }
    }
  }

  /// The height of a row; a view that has the width that it needs is not measured again.
  private func height(of views: [View], _ sizes: [Size?], _ widths: [Int], in room: Size) -> Int {
    zip(zip(views, sizes), widths).reduce(0) { highest, cell in
      let ((view, size), width) = cell
      let known = size.flatMap { $0.width <= width ? $0 : nil }
      return max(highest, (known ?? view.sizeThatFits(Size(width: width, height: room.height))).height.clampedLength)
    }
  }

  /// The size that the columns and rows need, flexible ones included.
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
