// SPDX-License-Identifier: Apache-2.0

/// The cells that a window shows, composed from the layers of its views.
@MainActor
final class Screen {
  private(set) var grid = Grid(size: .zero)
  private var rows = RowSet(height: 0)
  /// The scrolling since the last frame.
  private var scrolls = ScrollList()

  init() {}

  /// Whether any part must be composed.
  var isDamaged: Bool { !rows.isEmpty }

  /// Marks a part that must be composed again.
  func damage(_ rect: Rect) {
    guard !rect.isEmpty else { return }
    rows.insert(rect.minY..<rect.maxY)
  }

  /// Resizes the screen, and marks all of it.
  func reset(to size: Size) {
    if grid.size != size {
      grid = Grid(size: size)
      rows = RowSet(height: grid.size.height)
    }
    rows.insert(0..<grid.size.height)
    scrolls.removeAll()
  }

  /// Records that a view has scrolled below its first `fixed` rows, upwards if `rows` is positive.
  func noteScroll(of view: View, below fixed: Int, by rows: Int) { scrolls.note(view, below: fixed, rows) }

  /// Returns the visible scrolling since the last frame.
  func takeScrolls() -> [ScrollHint] { scrolls.take() }

  /// Composes the damaged rows, draws views that have become visible, and returns the number of views drawn.
  func compose(_ window: Window) -> Int {
    var count = 0
    var row = 0
    while let band = rows.takeBand(from: row) {
      row = band.upperBound
      let area = Rect(x: 0, y: band.lowerBound, width: grid.size.width, height: band.count)
      compose(window, corner: .zero, clip: Rect(origin: .zero, size: grid.size), area, &count)
    }
    return count
  }

  /// - Parameters:
  ///   - corner: The position of the view's top left corner.
  ///   - clip: The part of the screen in which the view is visible.
  ///   - band: The part of the screen to compose.
  private func compose(_ view: View, corner: Point, clip: Rect, _ band: Rect, _ count: inout Int) {
    guard !view.isHidden else { return }
    let visible = Rect(origin: corner, size: view.frame.size).intersection(clip)
    var area = visible.intersection(band).intersection(Rect(origin: .zero, size: grid.size))
    guard !area.isEmpty else { return }
    if let background = view.background { fill(area, Cell(glyph: 0x20, width: 1, style: background)) }
    let part = visible.offset(by: .zero - corner)
    if view.layer.needsDrawing(of: part) {
      view.layer.draw(visible: part)
      count += 1
      // Drawing may have run the loop, and the screen may have been resized meanwhile.
      area = area.intersection(Rect(origin: .zero, size: grid.size))
    }
    copy(view.layer, area, corner)
    for subview in view.subviews {
      compose(subview, corner: corner + subview.frame.origin - view.bounds.origin, clip: visible, area, &count)
    }
  }

  private func fill(_ area: Rect, _ cell: Cell) {
    for y in area.minY..<area.maxY {
      separate(x: area.minX, y)
      separate(x: area.maxX, y)
      for x in area.minX..<area.maxX { grid[x, y] = cell }
    }
  }

  private func copy(_ layer: Layer, _ area: Rect, _ corner: Point) {
    let shift = corner + layer.coverage.origin
    let area = area.intersection(Rect(origin: shift, size: layer.grid.size))
    guard !area.isEmpty else { return }
    for y in area.minY..<area.maxY {
      var x = area.minX
      while x < area.maxX {
        let cell = layer.grid[x - shift.x, y - shift.y]
        if cell.isClear {
          x += 1
        } else if cell.width == 2, x + 1 < area.maxX {
          put(cell, x, y)
          x += 2
        } else {
          // A wide character that is cut in two is shown as a blank.
          put(cell.width == 1 ? cell : Cell(glyph: 0x20, width: 1, style: cell.style), x, y)
          x += 1
        }
      }
    }
  }

  private func put(_ cell: Cell, _ x: Int, _ y: Int) {
    var cell = cell
    let below = grid[x, y]
    if cell.style.background == .default { cell.style.background = below.style.background }
    if below.width != 1 || cell.width != 1 {
      separate(x: x, y)
      separate(x: x + Int(cell.width), y)
    }
    grid[x, y] = cell
    if cell.width == 2 { grid[x + 1, y] = .continuation(style: cell.style) }
  }

  /// Replaces a wide character with two blanks if it extends across a column's left edge.
  private func separate(x: Int, _ y: Int) {
    guard x > 0, x < grid.size.width, grid[x, y].width == 0 else { return }
    for x in x - 1...x { grid[x, y] = Cell(glyph: 0x20, width: 1, style: grid[x, y].style) }
  }
}

// Drawing, before the screen is composed.
extension View {
  /// Draws the marked views from top to bottom, and returns the number of views drawn.
  ///
  /// - Parameters:
  ///   - corner: The position of the view's top left corner.
  ///   - clip: The part of the screen in which the view is visible.
  final func display(corner: Point, clip: Rect) -> Int {
    var count = 0
    let visible = isHidden ? .zero : Rect(origin: corner, size: frame.size).intersection(clip)
    if marks.remove(.display) != nil, drawsContents {
      if visible.isEmpty {
        layer.discard()
      } else {
        layer.draw(visible: visible.offset(by: .zero - corner))
        window?.screen.damage(visible)
        count += 1
      }
    }
    guard marks.remove(.displayWithin) != nil else { return count }
    for subview in subviews {
      count += subview.display(corner: corner + subview.frame.origin - bounds.origin, clip: visible)
    }
    return count
  }
}
