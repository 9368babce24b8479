// SPDX-License-Identifier: Apache-2.0

/// Recognises a movement of the mouse with the button held down.
///
/// The corresponding class of UIKit is `UIPanGestureRecognizer`.
@MainActor
open class PanGestureRecognizer: GestureRecognizer {
  /// How many columns or rows the mouse has to move for the gesture to begin; at least one.
  public let minimumDistance: Int

  /// Makes a recogniser that is on no view.
  ///
  /// - Parameters:
  ///   - minimumDistance: How many columns or rows the mouse has to move for the gesture to begin; less than one counts
  ///     as one.
  ///   - action: Called for each state of the gesture.
  public init(minimumDistance: Int = 2, _ action: @escaping @MainActor (PanGestureRecognizer) -> Void) {
    self.minimumDistance = max(1, minimumDistance)
    super.init { recognizer in
      guard let pan = recognizer as? PanGestureRecognizer else { return }
      DisplayCallOut.note(closure: PanAction(call: action))
      action(pan)
    }
  }

  /// How many columns and rows the mouse has moved since the touch began.
  public final var translation: Point { location - startLocation }

  override open func touchesMoved(_ touch: Touch) {
    switch state {
    case .possible where isHeld: break
    case .possible: if touch.location.distance(to: touch.start) >= minimumDistance { state = .began }
    case .began, .changed: state = .changed
    case .ended, .cancelled, .failed, .recognized: break
    }
  }

  override open func touchesEnded(_ touch: Touch) {
    state = state == .possible && !isHeld ? .failed : .ended
  }
}

/// The action by itself, so that a record names it.
private struct PanAction {
  let call: @MainActor (PanGestureRecognizer) -> Void
}
