// SPDX-License-Identifier: Apache-2.0

/// A gesture recogniser for a button that is held down for some time without being moved.
///
/// The corresponding class of UIKit is `UILongPressGestureRecognizer`.
@MainActor
open class LongPressGestureRecognizer: GestureRecognizer {
  /// The time for which the button must be held down before the gesture begins.
  public let minimumDuration: Duration
  /// The number of columns and rows that the mouse may move meanwhile.
  public let slack: Int

  /// Creates a recogniser that is not attached to a view.
  ///
  /// - Parameters:
  ///   - minimumDuration: The time for which the button must be held down before the gesture begins.
  ///   - slack: The number of columns and rows that the mouse may move meanwhile.
  ///   - action: A closure called for each state of the gesture.
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

/// Wraps the action so that records can name it.
private struct LongPressAction {
  let call: @MainActor (LongPressGestureRecognizer) -> Void
}
