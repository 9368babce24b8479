// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// An object that can receive and handle events: a view, a window, or the application.
///
/// To handle an event, override the method for it. The default implementations pass the event to the ``next``
/// responder: from the view that has the focus or was hit to its superview, and on to the window and the application.
/// An override can pass the event on by calling `super`. A chain that contains a cycle terminates the process with a
/// message that names a responder in it.
///
/// The corresponding class of UIKit is `UIResponder`.
@MainActor
open class Responder {
  /// Creates a responder.
  public init() {}

  /// The responder that receives the events that this one does not handle, or `nil` if there is none.
  ///
  /// - Precondition: The chain that an override creates does not contain a cycle.
  open var next: Responder? { nil }

  /// The window whose focus the responder can have, or nil if it is in none.
  var focusWindow: Window? { nil }

  // MARK: Focus

  /// Whether the responder can have the focus, which is false by default.
  open var canBecomeFirstResponder: Bool { false }

  /// Whether the responder resigns the focus when another responder requests it, which is true by default.
  ///
  /// It is ignored when a view is removed from its window.
  open var canResignFirstResponder: Bool { true }

  /// Whether the responder has the focus, and so receives keys first.
  public var isFirstResponder: Bool { focusWindow?.firstResponder === self }

  /// Requests the focus.
  ///
  /// Overrides must call `super` and check the result.
  ///
  /// - Returns: Whether the responder now has the focus. It does not if it cannot have the focus, is not in a window,
  ///   or the current first responder does not resign.
  @discardableResult
  open func becomeFirstResponder() -> Bool {
    guard let window = focusWindow else { return false }
    if askForFocus(of: window) == .ask, let current = window.firstResponder {
      guard current.resignFirstResponder() else { return false }
      // The other responder may have changed anything.
      guard focusWindow === window else { return false }
      _ = askForFocus(of: window)
    }
    return isFirstResponder
  }

  private func askForFocus(of window: Window) -> FocusState.Action {
    var focus = window.focus
    let action = focus.request(ObjectIdentifier(self), isAble: canBecomeFirstResponder)
    if action == .take { window.firstResponder = self }
    return action
  }

  /// Resigns the focus, so that no responder has it.
  ///
  /// Overrides must call `super` and check the result.
  ///
  /// - Returns: Whether the responder no longer has the focus.
  @discardableResult
  open func resignFirstResponder() -> Bool {
    guard let window = focusWindow else { return true }
    var focus = window.focus
    switch focus.resign(ObjectIdentifier(self), isAble: canResignFirstResponder) {
    case .release: window.firstResponder = nil
    case .reject: return false
    case .nothing, .ask, .take: break
    }
    return true
  }

  // MARK: Events

  /// Called when a key was pressed, if the responder has the focus or the responders before it passed the key on.
  open func keyPressed(_ key: KeyEvent) { passOn { $0.keyPressed(key) } }

  /// Called when text was pasted, if the responder has the focus or the responders before it passed the text on.
  ///
  /// - Parameters:
  ///   - text: The text, whose line endings have been converted to `\n`.
  ///   - isTruncated: Whether the text was longer than the device's limit, so that its end is missing.
  open func pasted(_ text: String, isTruncated: Bool) {
    passOn { $0.pasted(text, isTruncated: isTruncated) }
  }

  /// Called when the wheel is turned above the responder.
  open func wheelTurned(_ wheel: MouseEvent.Wheel, at event: MouseEvent) {
    passOn { $0.wheelTurned(wheel, at: event) }
  }

  /// Called when a touch begins on a view.
  open func touchesBegan(_ touch: Touch) { passOn { $0.touchesBegan(touch) } }

  /// Called when a touch moves.
  open func touchesMoved(_ touch: Touch) { passOn { $0.touchesMoved(touch) } }

  /// Called when a touch ends because the button is released.
  ///
  /// For each touch and view, either this or ``touchesCancelled(_:)`` is called, exactly once.
  open func touchesEnded(_ touch: Touch) { passOn { $0.touchesEnded(touch) } }

  /// Called when a touch is cancelled because a gesture was recognised, the view left the window, the window was
  /// resized, or the program was suspended.
  open func touchesCancelled(_ touch: Touch) { passOn { $0.touchesCancelled(touch) } }

  // MARK: The chain

  /// The number of responders that are currently passing an event on.
  private static var depth = 0

  private func passOn(_ body: (Responder) -> Void) {
    guard let next else { return }
    Self.depth += 1
    defer { Self.depth -= 1 }
    // Chains are short. A very long one may be a cycle, for which the stack has no room.
    if Self.depth.isMultiple(of: 1000) { checkChain() }
    body(next)
  }

  /// Terminates the process if the chain contains a cycle.
  private func checkChain() {
    var seen: Set<ObjectIdentifier> = []
    var responder: Responder? = self
    while let current = responder {
      guard seen.insert(ObjectIdentifier(current)).inserted else {
        let name = (current as? View)?.displayName ?? "\(type(of: current))"
        fatalError("the chain of responders comes back to \(name): its next responder cannot be one before it")
      }
      responder = current.next
    }
  }
}

extension Responder: IdentityHashable {}
