// SPDX-License-Identifier: Apache-2.0

/// Recognises a button that is held down for a time without being moved.
///
/// The corresponding class of UIKit is `UILongPressGestureRecognizer`.
@MainActor
open class LongPressGestureRecognizer: GestureRecognizer {
  /// How long the button is held down before the gesture begins.
  public let minimumDuration: Duration
  /// How many columns and rows the mouse may move meanwhile.
  public let slack: Int

  /// Makes a recogniser that is on no view.
  ///
  /// - Parameters:
  ///   - minimumDuration: How long the button is held down before the gesture begins.
  ///   - slack: How many columns and rows the mouse may move meanwhile.
  ///   - action: Called for each state of the gesture.
  public init(
    minimumDuration: Duration = .milliseconds(500), slack: Int = 1,
    _ action: @escaping @MainActor (LongPressGestureRecognizer) -> Void
  ) {
    self.minimumDuration = minimumDuration
    self.slack = max(0, slack)
    super.init { recognizer in
      guard let press = recognizer as? LongPressGestureRecognizer else { return }
      DisplayCallOut.note(closure: LongPressAction(call: action))
      action(press)
    }
  }

  override open func touchesBegan(_ touch: Touch) { startTimer(minimumDuration) }

  override open func timeOut() { if touch != nil { state = .began } }

  override open func touchesMoved(_ touch: Touch) {
    switch state {
    case .began, .changed: state = .changed
    case .possible:
      if !isHeld, touch.location.distance(to: touch.start) > slack { state = .failed }
    case .ended, .cancelled, .failed, .recognized: break
    }
  }

  override open func touchesEnded(_ touch: Touch) {
    stopTimer()
    state = state == .possible && !isHeld ? .failed : .ended
  }

  override open func reset() { stopTimer() }
}

/// The action by itself, so that a record names it.
private struct LongPressAction {
  let call: @MainActor (LongPressGestureRecognizer) -> Void
}
