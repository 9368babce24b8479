// SPDX-License-Identifier: Apache-2.0

/// The topmost view: it fills the device, assigns the focus, and dispatches events.
///
/// The corresponding class of UIKit is `UIWindow`.
@MainActor
open class Window: View {
  /// How many times views that are marked within ``View/layoutSubviews()`` are laid out in one commit.
  ///
  /// Views that mark each other forever do not keep a program busy: marks that remain then are dropped, and a line on
  /// the standard error names a marked view. A view that a layout adds is laid out in the round that follows. Layouts
  /// that ask for another within themselves, by ``View/layoutIfNeeded()``, may be nested to the same depth.
  public static let layoutRounds = 16

  /// The application that shows the window; nil if there is none.
  public internal(set) final weak var application: Application?

  /// The responder that has the focus; nil if none has.
  public internal(set) final var firstResponder: Responder? {
    didSet { if firstResponder !== oldValue { focusDidChange() } }
  }

  /// Who has the focus.
  var focus: FocusState { FocusState(holder: firstResponder.map { ObjectIdentifier($0) }) }

  let screen = Screen()
  /// The buttons that are held down.
  var touches: [Touch] = []
  /// What lives as long as a view that stands for it is in the window, by that view.
  var keptObjects: [ObjectIdentifier: AnyObject] = [:]

  /// Makes a window.
  ///
  /// - Parameter frame: Its size, until an application shows it in the size of its device.
  override public init(frame: Rect = .zero) {
    super.init(frame: frame)
    window = self
    background = .plain
  }

  /// False, unless a subclass that draws says otherwise.
  override open var drawsContents: Bool { false }

  override open var next: Responder? { application }

  /// Dispatches an event: keys and texts to the responder that has the focus, mouse events to the views below the
  /// mouse.
  ///
  /// A subclass that overrides it sees all events of the window first; it calls `super`.
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

  /// The responder that gets keys: the one with the focus, or, where that is a view that is hidden or disabled, the
  /// first above it that is neither, nor in one that is.
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

  /// Whether the terminal's window is in front, as far as the terminal has said.
  public private(set) final var isInFront = true

  /// The terminal's window came to the front, or left it: then nothing says when a button is released.
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

  /// Called when the focus has moved to another responder, or to none.
  open func focusDidChange() {}

  /// Moves the focus with Tab and, backwards, with Shift-Tab; passes other keys on.
  override open func keyPressed(_ key: KeyEvent) {
    switch (key.key, key.modifiers) {
    case (.tab, []): moveFocus(forward: true)
    case (.tab, .shift): moveFocus(forward: false)
    default: super.keyPressed(key)
    }
  }

  /// A change is to be shown.
  final func setNeedsCommit() { application?.setNeedsCommit() }

  /// A view is about to leave, with what is within it.
  final func viewWillLeave(_ view: View) {
    cancelTouches { $0.view?.isDescendant(of: view) ?? true }
    guard let responder = firstResponder as? View, responder.isDescendant(of: view) else { return }
    responder.resignFirstResponder()
    var focus = focus
    if focus.remove(ObjectIdentifier(responder)) == .release { firstResponder = nil }
  }
}
