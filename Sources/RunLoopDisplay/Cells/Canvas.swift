// SPDX-License-Identifier: Apache-2.0

/// What is drawn on: the cells of a grid within a clipping rectangle, by coordinates of the one who draws.
///
/// A canvas is a value that owns its grid; it can be drawn on from any thread. What lies outside of the clip is left out, and
/// a wide character of which only half would be visible is drawn as a blank.
public struct Canvas: Sendable {
  /// The grid.
  public private(set) var grid: Grid
  /// Where the drawer's cell (0, 0) lies in the grid.
  private(set) var origin: Point
  /// The visible part, in coordinates of the grid.
  private(set) var clip: Rect

  /// Makes a canvas of blanks.
  public init(size: Size) { self.init(grid: Grid(size: size)) }

  /// Makes a canvas that draws on a grid's cells.
  public init(grid: Grid) {
    self.grid = grid
    origin = .zero
    clip = Rect(origin: .zero, size: grid.size)
  }

  /// The visible part, in coordinates of the one who draws.
  public var visibleRect: Rect { clip.offset(by: Point(x: -origin.x, y: -origin.y)) }

  /// Lets a closure draw in a rectangle: its corner is (0, 0) there, and what lies outside is not visible.
  public mutating func within<R>(_ rect: Rect, _ body: (inout Canvas) throws -> R) rethrows -> R {
    let (origin, clip) = (self.origin, self.clip)
    self.origin = origin + rect.origin
    self.clip = clip.intersection(rect.offset(by: origin))
    defer {
      self.origin = origin
      self.clip = clip
    }
    return try body(&self)
  }

  /// Fills a rectangle with a character.
  public mutating func fill(_ rect: Rect, _ character: Character = " ", style: Style = .plain) {
    let visible = rect.offset(by: origin).intersection(clip)
    guard !visible.isEmpty else { return }
    let cell = Cell(character, style: style)
    for y in visible.minY..<visible.maxY { for x in visible.minX..<visible.maxX { put(cell, x: x, y: y) } }
  }

  /// Writes one line of text from a cell on.
  ///
  /// - Returns: The column behind the text.
  @discardableResult
  public mutating func draw(_ text: some StringProtocol, at point: Point, style: Style = .plain) -> Int {
    var x = point.x + origin.x
    let y = point.y + origin.y
    for character in text {
      let cell = Cell(character, style: style)
      put(cell, x: x, y: y)
      x += Int(cell.width)
    }
    return x - origin.x
  }

  /// Copies the cells of a grid to a rectangle of its size.
  public mutating func draw(_ other: Grid, at point: Point) {
    for y in 0..<other.size.height {
      for x in 0..<other.size.width {
        let cell = other[x, y]
        if cell.width > 0 { put(cell, x: point.x + origin.x + x, y: point.y + origin.y + y) }
      }
    }
  }

  /// Puts a cell, and sees to the halves of wide characters around it.
  private mutating func put(_ cell: Cell, x: Int, y: Int) {
    let width = Int(cell.width)
    guard width > 0, clip.contains(Point(x: x, y: y)) || (width == 2 && clip.contains(Point(x: x + 1, y: y))) else { return }
    if width == 2, !(clip.contains(Point(x: x, y: y)) && clip.contains(Point(x: x + 1, y: y))) {
      let visible = clip.contains(Point(x: x, y: y)) ? x : x + 1
      put(Cell(glyph: 0x20, width: 1, style: cell.style), x: visible, y: y)
      return
    }
    let last = x + width
    if grid[x, y].width == 0, x > 0 { grid[x - 1, y] = Cell(glyph: 0x20, width: 1, style: grid[x - 1, y].style) }
    if last < grid.size.width, grid[last, y].width == 0 {
      grid[last, y] = Cell(glyph: 0x20, width: 1, style: grid[last, y].style)
    }
    grid[x, y] = cell
    if width == 2 { grid[x + 1, y] = .continuation(style: cell.style) }
  }
}
