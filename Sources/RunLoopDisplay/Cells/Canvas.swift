// SPDX-License-Identifier: Apache-2.0

/// A drawing surface on the cells of a grid, with its own coordinates and clipping rectangle.
///
/// A canvas is a value that owns its grid, and can be used on any thread. Cells outside the clipping rectangle are not
/// drawn. A wide character that would be only half visible is drawn as a blank.
public struct Canvas: Sendable {
  /// The grid.
  public private(set) var grid: Grid
  /// The position of cell (0, 0) of the drawing code in the grid.
  private(set) var origin: Point
  /// The clipping rectangle, in the coordinates of the grid.
  private(set) var clip: Rect

  /// Creates a canvas of blank cells.
  public init(size: Size) { self.init(grid: Grid(size: size)) }

  /// Creates a canvas that draws on the cells of a grid.
  public init(grid: Grid) {
    self.grid = grid
    origin = .zero
    clip = Rect(origin: .zero, size: grid.size)
  }

  /// The clipping rectangle, in the coordinates of the drawing code.
  public var visibleRect: Rect { clip.offset(by: .zero - origin) }

  /// Calls a closure that draws within a rectangle, whose top left corner is (0, 0) in the closure.
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
  ///
  /// A wide character fills pairs of columns. If only half of it fits, a blank is drawn instead.
  ///
  /// - Complexity: O(n), where n is the number of visible cells.
  public mutating func fill(_ rect: Rect, _ character: Character = " ", style: Style = .plain) {
    let visible = rect.offset(by: origin).intersection(clip)
    guard !visible.isEmpty else { return }
    let cell = Cell(character, style: style)
    let blank = Cell(glyph: Glyphs.space, width: 1, style: style)
    for y in visible.minY..<visible.maxY {
      var x = visible.minX
      while x < visible.maxX {
        if cell.width == 2, x + 1 == visible.maxX { put(blank, x: x, y: y) } else { put(cell, x: x, y: y) }
        x += Int(cell.width)
      }
    }
  }

  /// Writes one line of text, starting at a cell.
  ///
  /// Control characters, including newlines and tabs, are shown as replacement characters.
  ///
  /// - Returns: The column after the text, whether it is visible or not.
  /// - Complexity: O(n), where n is the length of the text. ASCII text and known characters need no allocation.
  @discardableResult
  public mutating func draw(_ text: some StringProtocol, at point: Point, style: Style = .plain) -> Int {
    let start = point + origin
    var x = start.x
    let y = start.y
    let isASCII = text.utf8.withContiguousStorageIfAvailable { bytes in
      guard bytes.allSatisfy({ $0 < 0x80 && $0 != 0x0D }) else { return false }
      for byte in bytes {
        put(Glyphs.cell(of: Unicode.Scalar(byte), style: style), x: x, y: y)
        x = x.saturatingAdd(1)
      }
      return true
    }
    if isASCII == true { return x.saturatingSubtract(origin.x) }
    // Not generic, which would box the characters of any text.
    let characters = (text as? String)?[...] ?? (text as? Substring) ?? Substring(String(text))
    var index = characters.startIndex
    while index < characters.endIndex {
      let next = characters.index(after: index)
      let cell = Glyphs.cell(of: characters.unicodeScalars[index..<next], style: style)
      put(cell, x: x, y: y)
      x = x.saturatingAdd(Int(cell.width))
      index = next
    }
    return x.saturatingSubtract(origin.x)
  }

  /// Copies the cells of a grid to the canvas.
  ///
  /// - Complexity: O(n), where n is the number of visible cells.
  public mutating func draw(_ other: Grid, at point: Point) {
    let corner = point + origin
    let visible = Rect(origin: corner, size: other.size).intersection(clip)
    guard !visible.isEmpty else { return }
    for y in visible.minY..<visible.maxY {
      // The loop starts one column further left, because half of a wide character there becomes a blank.
      for x in max(corner.x, visible.minX - 1)..<visible.maxX {
        let cell = other[x - corner.x, y - corner.y]
        if cell.width > 0 { put(cell, x: x, y: y) }
      }
    }
  }

  /// Sets a cell, and blanks the halves of wide characters that it cuts off.
  private mutating func put(_ cell: Cell, x: Int, y: Int) {
    guard y >= clip.minY, y < clip.maxY, x < clip.maxX else { return }
    let last = x + Int(cell.width)
    guard x >= clip.minX, last <= clip.maxX else {
      if cell.width == 2 {
        // Half of the character is visible, or none of it.
        let blank = Cell(glyph: Glyphs.space, width: 1, style: cell.style)
        if x >= clip.minX, x < clip.maxX { put(blank, x: x, y: y) }
        if x + 1 >= clip.minX, x + 1 < clip.maxX { put(blank, x: x + 1, y: y) }
      }
      return
    }
    let width = grid.size.width
    let row = y * width
    grid.cells.withUnsafeMutableBufferPointer { cells in
      if cells[row + x].width == 0, x > 0 {
        cells[row + x - 1] = Cell(glyph: Glyphs.space, width: 1, style: cells[row + x - 1].style)
      }
      if last < width, cells[row + last].width == 0 {
        cells[row + last] = Cell(glyph: Glyphs.space, width: 1, style: cells[row + last].style)
      }
      cells[row + x] = cell
      if cell.width == 2 { cells[row + x + 1] = .continuation(style: cell.style) }
    }
  }
}
