// SPDX-License-Identifier: Apache-2.0

/// A rectangle of the screen that draws itself, contains other views, and handles events.
///
/// A view's frame is in the coordinates of its superview. Parts outside the superview are neither visible nor hit.
/// Later subviews are above earlier ones. Changes take effect at the end of the turn, in the commit: first,
/// ``layoutSubviews()`` is called on the views that were marked with ``setNeedsLayout()``, and then ``draw(_:)`` on
/// the views that were marked with ``setNeedsDisplay()``.
///
/// The corresponding class of UIKit is `UIView`.
@MainActor
open class View: Responder {
  /// The view's name in logs, or `nil` for the name of its type, which is the default.
  public var name: String?

  /// The layer that holds the view's contents.
  public let layer: Layer

  private var storedFrame: Rect
  private var storedOrigin = Point.zero
  /// The size of the frame before a stack, grid or box arranged the view, or nil if none has.
  private var ownSize: Size?
  /// The view that contains this one, or `nil`, the initial value, if there is none.
  public internal(set) final weak var superview: View?
  /// The views within this one, from bottom to top, initially none.
  public internal(set) final var subviews: [View] = []
  /// The window that contains the view, the view itself if it is a window, or `nil`, the initial value.
  public internal(set) final weak var window: Window?

  var marks: Marks = [.layout, .display]
  /// The round of a layout in which the view was added, or 0.
  var layoutRoundAdded = 0
  /// The recognisers of the view, in the order in which they were added.
  var recognizers = GestureList()

  /// Creates a view.
  ///
  /// - Parameter frame: The frame in its superview.
  public init(frame: Rect = .zero) {
    storedFrame = frame.clamped
    layer = Layer()
    super.init()
    layer.view = self
  }

  override open var next: Responder? { superview }

  final override var focusWindow: Window? { window }

  // MARK: Geometry

  /// The frame of the view, in the coordinates of its superview's bounds.
  ///
  /// Negative widths and heights count as 0, and all values are clamped between -2^30 and 2^30.
  public var frame: Rect {
    get { storedFrame }
    set { setFrame(newValue.clamped) }
  }

  /// The bounds of the view in its own coordinates, in which subviews are positioned.
  ///
  /// Setting the origin, which is zero by default, scrolls the subviews. The size is the frame's.
  public var bounds: Rect {
    get { Rect(origin: storedOrigin, size: storedFrame.size) }
    set {
      let bounds = newValue.clamped
      if bounds.origin != storedOrigin {
        storedOrigin = bounds.origin
        layer.setNeedsCompose()
        markForLayout()
      }
      frame.size = bounds.size
    }
  }

  private func setFrame(_ frame: Rect) {
    guard frame != storedFrame else { return }
    let before = storedFrame.size
    layer.setNeedsCompose()
    storedFrame = frame
    layer.setNeedsCompose()
    guard frame.size != before else { return }
    ownSize = nil
    markForLayout()
    setNeedsDisplay()
  }

  /// Sets the frame without changing the size that fits the view.
  final func arrange(in frame: Rect) {
    let size = ownSize ?? storedFrame.size
    self.frame = frame
    ownSize = size
  }

  // MARK: Appearance

  /// Whether the view and its subviews are excluded from the screen and from hit testing, `false` by default.
  public var isHidden = false {
    willSet { if newValue != isHidden, newValue { layer.setNeedsCompose() } }
    didSet {
      guard oldValue != isHidden else { return }
      sizeMayHaveChanged()
      if !isHidden { layer.setNeedsCompose() }
    }
  }

  /// Whether the view and its subviews receive touches and wheel events, `true` by default.
  public var isUserInteractionEnabled = true

  /// The style of the cells that the view does not draw, or `nil`, the default, if what is below shows through.
  ///
  /// Text with the default background takes the background of what is below it.
  public var background: Style? {
    didSet { if oldValue != background { layer.setNeedsCompose() } }
  }

  /// Whether ``View/draw(_:)`` is called.
  ///
  /// It is false for a plain view, which needs no memory for contents, and true for subclasses unless they override it.
  open var drawsContents: Bool { type(of: self) != View.self }

  /// Draws the view, in the commit, if the view was marked, became visible, or was resized.
  ///
  /// - Parameter canvas: A canvas of blank cells, through which what is below is visible. Cell (0, 0) is the top left
  ///   corner of the view, whatever the origin of the bounds. Only the ``Canvas/visibleRect`` needs to be drawn.
  ///
  /// The corresponding function of UIKit is `draw(_:)`.
  open func draw(_ canvas: inout Canvas) {}

  /// Sets the frames of subviews, in the commit, if the view was marked or its bounds changed.
  ///
  /// Views that are marked meanwhile are laid out and drawn in the same commit.
  open func layoutSubviews() {}

  /// Whether the layout depends on the sizes that fit the subviews.
  var arrangesBySize: Bool { false }

  /// Returns the size that fits the view's contents, which is the size of its frame by default.
  ///
  /// Frames that stacks, grids and boxes set do not count, so that a view that they shorten gets its size back.
  ///
  /// - Parameter size: The available space.
  open func sizeThatFits(_ size: Size) -> Size { ownSize ?? frame.size }

  // MARK: Events

  /// Returns the topmost view at a point that can be hit.
  ///
  /// Later subviews take precedence over earlier ones, and subviews over the view itself. Hidden and disabled views
  /// are skipped together with their subviews, and parts of a view outside its superview are not hit. An override can
  /// enlarge the area that responds to the mouse, or let views below be hit.
  ///
  /// - Parameter point: The point in the coordinates of this view's bounds.
  /// - Returns: The view, or `nil` if the point is outside this view.
  open func hitTest(_ point: Point) -> View? {
    guard !isHidden, isUserInteractionEnabled, bounds.contains(point) else { return nil }
    for view in subviews.reversed() {
      if let hit = view.hitTest(point - view.frame.origin + view.bounds.origin) { return hit }
    }
    return self
  }

  /// Whether a gesture may begin, which is true by default.
  ///
  /// Called when a recogniser has found its gesture, on the view that was hit and on the view that the recogniser is
  /// attached to. If it returns false, the recogniser fails.
  open func gestureRecognizerShouldBegin(_ recognizer: GestureRecognizer) -> Bool { true }

  /// The cursor while the view has the focus, in the coordinates of its bounds, which is `nil` by default.
  ///
  /// It is read in each commit that draws the view.
  open var textCursor: TextCursor? { nil }

  /// Called on every view of a window when the terminal window became or stopped being frontmost; see
  /// ``Window/isInFront``.
  open func windowFocusDidChange() {}

  // MARK: Being in a window

  /// Called after the view was added to a window or removed from one.
  open func didMoveToWindow() {}
}

extension View {
  final var displayName: String { name ?? "\(type(of: self))" }
}

extension Rect {
  /// The rectangle, clamped so that its coordinates can be added without overflow.
  var clamped: Rect {
    let limit = 1 << 30
    func clamp(_ value: Int) -> Int { min(max(value, -limit), limit) }
    return Rect(
      x: clamp(origin.x), y: clamp(origin.y), width: max(0, clamp(size.width)), height: max(0, clamp(size.height)))
  }
}
