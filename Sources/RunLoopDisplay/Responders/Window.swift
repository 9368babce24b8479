// SPDX-License-Identifier: Apache-2.0

/// The topmost view, which fills the device, manages the focus, and dispatches events.
///
/// The corresponding class of UIKit is `UIWindow`.
@MainActor
open class Window: View {
  /// The maximum number of layout rounds in one commit.
  ///
  /// The limit keeps views that mark each other in ``View/layoutSubviews()`` from blocking the program. Marks that
  /// remain after the last round are dropped, and a line on standard error names a marked view. A view that is added
  /// during layout is laid out in the following round. The same limit applies to layouts nested by
  /// ``View/layoutIfNeeded()``.
  public static let layoutRounds = 16

  /// The application that shows the window, or `nil`, the initial value, if there is none.
  public internal(set) final weak var application: Application?

  /// The responder that has the focus, or `nil`, the initial value, if none has.
  public internal(set) final var firstResponder: Responder? {
    didSet { if firstResponder !== oldValue { focusDidChange() } }
  }

  var focus: FocusState { FocusState(holder: firstResponder.map { ObjectIdentifier($0) }) }

  let screen = Screen()
  /// The touches in progress.
  var touches: [Touch] = []
  /// The objects that are retained as long as a view is in the window, by that view.
  var keptObjects: [ObjectIdentifier: AnyObject] = [:]

  /// Creates a window.
  ///
  /// - Parameter frame: The window's frame until an application resizes it to the size of its device.
  override public init(frame: Rect = .zero) {
    super.init(frame: frame)
    window = self
    background = .plain
  }

  /// Whether the window draws contents of its own, which is false by default.
  override open var drawsContents: Bool { false }

  override open var next: Responder? { application }

  /// Dispatches an event: keys and text to the first responder, mouse events to the views below the mouse.
  ///
  /// An override sees all events of the window first, and must call `super`.
  open func sendEvent(_ event: InputEvent) {
    switch event {
    case .key(let key):
      let receiver = keyReceiver
      DisplayCallOut.note(receiver)
      receiver.keyPressed(key)
    case .paste(let text, let isTruncated):
      let receiver = keyReceiver
      DisplayCallOut.note(receiver)
      receiver.pasted(text, isTruncated: isTruncated)
    case .mouse(let event): sendMouse(event)
    case .focus(let isInFront): setInFront(isInFront)
    case .resize, .hangUp: break
    }
  }

  /// The responder that receives keys: the first responder, or its nearest ancestor that is visible and enabled.
  private var keyReceiver: Responder {
    guard let view = firstResponder as? View else { return firstResponder ?? self }
    var receiver = view
    var current: View? = view
    while let view = current {
      if view.isHidden || !view.isUserInteractionEnabled { receiver = view.superview ?? self }
      current = view.superview
    }
    return receiver
  }

  /// Whether the terminal window is frontmost, as far as the terminal reports it; initially `true`.
  public private(set) final var isInFront = true

  /// Records whether the terminal window is frontmost.
  ///
  /// Otherwise, the terminal does not report releases of buttons.
  private func setInFront(_ isInFront: Bool) {
    if !isInFront {
      cancelTouches { _ in true }
      application?.gestures.hovered(nil, .zero)
    }
    guard isInFront != self.isInFront else { return }
    self.isInFront = isInFront
    notifyOfFocus(self)
  }

  private func notifyOfFocus(_ view: View) {
    view.windowFocusDidChange()
    for subview in view.subviews where subview.window === self { notifyOfFocus(subview) }
  }

  /// Called after the focus has moved to another responder, or after a responder has lost it.
  open func focusDidChange() {}

  /// Moves the focus on Tab and Shift-Tab, and passes other keys on.
  override open func keyPressed(_ key: KeyEvent) {
    switch (key.key, key.modifiers) {
    case (.tab, []): moveFocus(forward: true)
    case (.tab, .shift): moveFocus(forward: false)
    default: super.keyPressed(key)
    }
  }

  /// Requests a commit that shows a change.
  final func setNeedsCommit() { application?.setNeedsCommit() }

  /// Called before a view is removed, together with the views within it.
  final func viewWillLeave(_ view: View) {
    cancelTouches { $0.view?.isDescendant(of: view) ?? true }
    guard let responder = firstResponder as? View, responder.isDescendant(of: view) else { return }
    responder.resignFirstResponder()
    // It may have declined, or passed the focus on to another view that leaves.
    if let responder = firstResponder as? View, responder.isDescendant(of: view) { firstResponder = nil }
  }
}
