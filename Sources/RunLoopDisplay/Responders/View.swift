// SPDX-License-Identifier: Apache-2.0

/// A rectangle of the screen that draws itself, has views within it, and handles events.
///
/// A view's frame is in the coordinates of its superview, and the parts of it outside its superview are neither visible
/// nor hit. Later subviews lie above earlier ones. Changes of views take effect at the end of the turn, in the commit:
/// first ``layoutSubviews()`` of the views that were marked with ``setNeedsLayout()``, then ``draw(_:)`` of the views
/// that were marked with ``setNeedsDisplay()``.
///
/// The corresponding class of UIKit is `UIView`.
@MainActor
open class View: Responder {
  /// The view's name in logs; nil means the name of its type.
  public var name: String?

  /// The view's drawing.
  public let layer: Layer

  private var storedFrame: Rect
  private var storedOrigin = Point.zero
  /// The view that this one is in; nil if it is in none.
  public internal(set) final weak var superview: View?
  /// The views within this one, the lowest first.
  public internal(set) final var subviews: [View] = []
  /// The window that the view is in, or the view itself if it is a window; nil if it is in none.
  public internal(set) final weak var window: Window?

  var marks: Marks = [.layout, .display]
  /// The round of a layout in which the view was added; 0: none.
  var layoutRoundAdded = 0
  /// The recognisers in the order in which they were added, as their owner sees them.
  var recognizers = GestureList()

  /// Makes a view.
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
  /// A width or height below 0 counts as 0, and a number beyond 2^30, or -2^30, counts as that.
  public var frame: Rect {
    get { storedFrame }
    set { setFrame(newValue.clamped) }
  }

  /// The view's rectangle in its own coordinates: subviews lie in these.
  ///
  /// Its origin is zero unless it is set, which scrolls the subviews; its size is that of the frame.
  public var bounds: Rect {
    get { Rect(origin: storedOrigin, size: storedFrame.size) }
    set {
      let bounds = newValue.clamped
      if bounds.origin != storedOrigin {
        storedOrigin = bounds.origin
        layer.setNeedsCompose()
        setNeedsLayout()
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
    setNeedsLayout()
    setNeedsDisplay()
  }

  // MARK: Looks

  /// Whether the view and its subviews are left out of the screen, and of the search for a view that was hit.
  public var isHidden = false {
    willSet { if newValue != isHidden, newValue { layer.setNeedsCompose() } }
    didSet { if oldValue != isHidden, !isHidden { layer.setNeedsCompose() } }
  }

  /// Whether the view and its subviews get touches and the wheel's turns.
  public var isUserInteractionEnabled = true

  /// The style of the cells that the view does not draw; if it is nil, what lies below is visible there.
  ///
  /// Text with the default background has the background of what lies below it.
  public var background: Style? {
    didSet { if oldValue != background { layer.setNeedsCompose() } }
  }

  /// Whether ``View/draw(_:)`` is called: a view without contents of its own takes no memory for them.
  ///
  /// It is false for a plain view, and true for its subclasses, unless they override it.
  open var drawsContents: Bool { type(of: self) != View.self }

  /// Draws the view; called in the commit if the view was marked, is visible, or has another size.
  ///
  /// - Parameter canvas: Blank cells, through which what lies below is visible. Cell (0, 0) is the view's top left
  ///   corner, whatever the origin of the bounds; ``Canvas/visibleRect`` is the part that is needed.
  ///
  /// The corresponding function of UIKit is `draw(_:)`.
  open func draw(_ canvas: inout Canvas) {}

  /// Sets the frames of subviews; called in the commit if the view was marked, or its bounds have changed.
  ///
  /// Views that are marked meanwhile are laid out and drawn in the same commit.
  open func layoutSubviews() {}

  /// The size that the view needs for what it shows; that of its frame, unless a subclass overrides it.
  ///
  /// - Parameter size: The room that there is.
  open func sizeThatFits(_ size: Size) -> Size { frame.size }

  // MARK: Events

  /// The view that is hit at a point: the topmost view there that can be hit.
  ///
  /// Later subviews come before earlier ones, and subviews before the view itself. A view that is hidden or disabled is
  /// skipped, together with its subviews, and the parts of a view outside its superview are not hit. An override can
  /// make a view larger for the mouse, or let what lies below it be hit.
  ///
  /// - Parameter point: The point in coordinates of this view's bounds.
  /// - Returns: The view; nil if the point is outside of this one.
  open func hitTest(_ point: Point) -> View? {
    guard !isHidden, isUserInteractionEnabled, bounds.contains(point) else { return nil }
    for view in subviews.reversed() {
      if let hit = view.hitTest(point - view.frame.origin + view.bounds.origin) { return hit }
    }
    return self
  }

  /// Whether a gesture may begin; true, unless a subclass overrides it.
  ///
  /// It is called when a recogniser has found its gesture, for the view that was hit and for the one that the
  /// recogniser is on. If it returns false, the recogniser fails.
  open func gestureRecognizerShouldBegin(_ recognizer: GestureRecognizer) -> Bool { true }

  /// The cursor while the view has the focus, in coordinates of its bounds; nil, unless a subclass overrides it.
  ///
  /// A view that is drawn anew has its cursor asked for in the same commit.
  open var textCursor: TextCursor? { nil }

  /// Called for every view of a window when the terminal's window came to the front, or left it; see
  /// ``Window/isInFront``.
  open func windowFocusDidChange() {}

  // MARK: Being in a window

  /// Called when the view has entered a window, or left one.
  open func didMoveToWindow() {}
}

extension View {
  /// The name in logs.
  final var displayName: String { name ?? "\(type(of: self))" }
}

extension Rect {
  /// The rectangle with coordinates that can be added without overflowing.
  var clamped: Rect {
    let limit = 1 << 30
    func clamp(_ value: Int) -> Int { min(max(value, -limit), limit) }
    return Rect(
      x: clamp(origin.x), y: clamp(origin.y), width: max(0, clamp(size.width)), height: max(0, clamp(size.height)))
  }
}
