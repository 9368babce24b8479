// SPDX-License-Identifier: Apache-2.0

/// The cells that a window shows, composed of the layers of its views.
@MainActor
final class Screen {
  private(set) var grid = Grid(size: .zero)
  private var rows = RowSet(height: 0)
  /// What has scrolled since the last frame.
  private var scrolls = ScrollList()

  init() {}

  /// Whether anything is to be composed.
  var isDamaged: Bool { !rows.isEmpty }

  /// A part is to be composed anew.
  func damage(_ rect: Rect) {
    guard !rect.isEmpty else { return }
    rows.insert(rect.minY..<rect.maxY)
  }

  /// Everything is to be composed, in a size.
  func reset(to size: Size) {
    if grid.size != size {
      grid = Grid(size: size)
      rows = RowSet(height: grid.size.height)
    }
    rows.insert(0..<grid.size.height)
    scrolls.removeAll()
  }

  /// What is within a view, below its first rows, has moved; positive: up.
  func noteScroll(of view: View, below fixed: Int, by rows: Int) { scrolls.note(view, below: fixed, rows) }

  /// The scrolls since the last frame, as far as they can be seen.
  func takeScrolls() -> [ScrollHint] { scrolls.take() }

  /// Composes what is damaged, and lets views draw that have become visible; returns how many have drawn.
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
  ///   - corner: Where the view's top left corner is.
  ///   - clip: Where the view can be seen.
  ///   - band: What is composed.
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
      // It may have run the loop, in which the screen may have got another size.
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
          // Of a character that is cut in two a blank is seen.
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

  /// Makes two blanks of a wide character that stands on both sides of a column's left edge.
  private func separate(x: Int, _ y: Int) {
    guard x > 0, x < grid.size.width, grid[x, y].width == 0 else { return }
    for x in x - 1...x { grid[x, y] = Cell(glyph: 0x20, width: 1, style: grid[x, y].style) }
  }
}

// Drawing, before the screen is composed.
extension View {
  /// Lets those views draw that were marked, from the top to the bottom; returns how many have.
  ///
  /// - Parameters:
  ///   - corner: Where the view's top left corner is.
  ///   - clip: Where the view can be seen.
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
