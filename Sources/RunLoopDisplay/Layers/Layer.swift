// SPDX-License-Identifier: Apache-2.0

/// The contents of a view: the cells that it has drawn, from which the screen is composed.
///
/// Most views draw their cells in ``View/draw(_:)``. A view whose cells come from elsewhere, such as another thread,
/// sets ``contents`` instead of drawing.
///
/// The corresponding class of Core Animation is `CALayer`.
@MainActor
public final class Layer {
  weak var view: View?
  /// The cells of a part of the view.
  private(set) var grid = Grid(size: .zero)
  /// The part of the view that the grid covers, relative to the view's top left corner.
  private(set) var coverage = Rect.zero
  private var areContentsSet = false

  init() {}

  /// The cells that were set instead of drawn, starting at the view's top left corner, or `nil` if the view draws.
  ///
  /// Setting them requests a commit. Cells beyond the view are not visible. Setting them within the view's own
  /// ``View/draw(_:)`` has no effect, because the drawing replaces them.
  public var contents: Grid? {
    get { areContentsSet ? grid : nil }
    set {
      areContentsSet = newValue != nil
      grid = newValue ?? Grid(size: .zero)
      coverage = Rect(origin: .zero, size: grid.size)
      setNeedsCompose()
      if newValue == nil { view?.setNeedsDisplay() }
    }
  }

  /// Requests a commit that composes the part of the screen where the view is visible.
  func setNeedsCompose() {
    guard let view, let window = view.window else { return }
    let rect = view.visibleRect
    guard !rect.isEmpty else { return }
    window.screen.damage(rect)
    window.setNeedsCommit()
  }
}

// Drawing
extension Layer {
  /// The number of cells up to which a view is kept as a whole, whatever part of it is visible.
  private static let largestWhole = 16_384

  /// Whether the view must draw before a part of it can be composed.
  func needsDrawing(of part: Rect) -> Bool {
    guard !areContentsSet, let view, view.drawsContents else { return false }
    return coverage.intersection(part) != part
  }

  /// Makes the view draw all of itself or, if it is large, its visible part.
  func draw(visible: Rect) {
    guard !areContentsSet, let view else { return }
    let size = view.frame.size
    let isSmall =
      size.width <= Self.largestWhole && size.height <= Self.largestWhole
      && size.width * size.height <= Self.largestWhole
    let part = isSmall ? Rect(origin: .zero, size: size) : visible
    if grid.size != part.size { grid = Grid(size: part.size) }
    grid.erase()
    // The canvas holds the only reference to the cells while it is drawn on, so that they are not copied.
    var canvas = Canvas(grid: grid)
    grid = Grid(size: .zero)
    DisplayCallOut.note(view)
    canvas.within(Rect(origin: .zero - part.origin, size: size)) { view.draw(&$0) }
    // Contents that were set meanwhile are replaced.
    areContentsSet = false
    coverage = part
    grid = canvas.grid
  }

  /// Discards the drawing, which is made again when it becomes visible.
  func discard() {
    guard !areContentsSet else { return }
    coverage = .zero
    grid = Grid(size: .zero)
  }
}

extension Cell {
  /// A cell in which nothing was drawn, through which what is below is visible.
  static let clear = Cell(glyph: 0, width: 1, style: .plain)

  var isClear: Bool { glyph == 0 && width == 1 }
}

extension Grid {
  /// Clears every cell.
  fileprivate mutating func erase() {
    for y in 0..<size.height { for x in 0..<size.width { self[x, y] = .clear } }
  }
}
