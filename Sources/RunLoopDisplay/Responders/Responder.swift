// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// A receiver of events: a view, a window, or the application.
///
/// A responder handles an event by overriding the function for it. By the functions of this class, an event that it
/// does not handle goes to its ``next`` responder: from the view that has the focus, or was hit, to its superview, and
/// so on to the window and the application. An override that calls `super` passes the event on. A chain that comes back
/// to a responder ends the process with a message that names it.
///
/// The corresponding class of UIKit is `UIResponder`.
@MainActor
open class Responder {
  /// Makes a responder.
  public init() {}

  /// The responder that gets the events that this one does not handle; nil if there is none.
  ///
  /// - Precondition: An override returns none by which the chain comes back to this one.
  open var next: Responder? { nil }

  /// The window whose focus the responder can have; nil if it is in none.
  var focusWindow: Window? { nil }

  // MARK: Focus

  /// Whether the responder can have the focus; false, unless a subclass overrides it.
  open var canBecomeFirstResponder: Bool { false }

  /// Whether the responder leaves the focus when another asks for it; true, unless a subclass overrides it.
  ///
  /// A view that leaves its window is not asked.
  open var canResignFirstResponder: Bool { true }

  /// Whether the responder has the focus: keys are sent to it first.
  public var isFirstResponder: Bool { focusWindow?.firstResponder === self }

  /// Asks for the focus.
  ///
  /// A subclass that overrides it calls `super`, and checks the result.
  ///
  /// - Returns: Whether the responder has the focus now. It does not if it cannot have the focus, is in no window, or
  ///   the responder that has the focus does not leave it.
  @discardableResult
  open func becomeFirstResponder() -> Bool {
    guard let window = focusWindow else { return false }
    if askForFocus(of: window) == .ask, let current = window.firstResponder {
      guard current.resignFirstResponder() else { return false }
      // What the other did may have changed everything.
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

  /// Leaves the focus, so that no responder has it.
  ///
  /// A subclass that overrides it calls `super`, and checks the result.
  ///
  /// - Returns: Whether the responder is now without the focus.
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

  /// Called when a key was pressed, and the responder has the focus, or those before it have passed the key on.
  open func keyPressed(_ key: KeyEvent) { passOn { $0.keyPressed(key) } }

  /// Called when a text was pasted, and the responder has the focus, or those before it have passed the text on.
  ///
  /// - Parameters:
  ///   - text: The text; its line ends are `\n`, whatever they were.
  ///   - isTruncated: Whether the text was longer than the device takes, and its end is missing.
  open func pasted(_ text: String, isTruncated: Bool) {
    passOn { $0.pasted(text, isTruncated: isTruncated) }
  }

  /// The wheel was turned above the responder.
  open func wheelTurned(_ wheel: MouseEvent.Wheel, at event: MouseEvent) {
    passOn { $0.wheelTurned(wheel, at: event) }
  }

  /// A touch began on a view.
  open func touchesBegan(_ touch: Touch) { passOn { $0.touchesBegan(touch) } }

  /// A touch has moved.
  open func touchesMoved(_ touch: Touch) { passOn { $0.touchesMoved(touch) } }

  /// A touch has ended: the button was released.
  ///
  /// For each touch and view either this or ``touchesCancelled(_:)`` is called, once.
  open func touchesEnded(_ touch: Touch) { passOn { $0.touchesEnded(touch) } }

  /// A touch was taken from its view: a gesture was recognised, the view has left the window, the window has another
  /// size, or the program was suspended.
  open func touchesCancelled(_ touch: Touch) { passOn { $0.touchesCancelled(touch) } }

  // MARK: The chain

  /// How many responders have passed an event on that have not returned.
  private static var depth = 0

  /// Calls the next responder.
  private func passOn(_ body: (Responder) -> Void) {
    guard let next else { return }
    Self.depth += 1
    defer { Self.depth -= 1 }
    // Chains are short: one that is not may be without an end, for which the stack has no room.
    if Self.depth.isMultiple(of: 1000) { checkChain() }
    body(next)
  }

  /// Ends the process if the chain comes back to a responder.
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
