// SPDX-License-Identifier: Apache-2.0

/// A gesture recogniser for moving the mouse with the button held down.
///
/// The corresponding class of UIKit is `UIPanGestureRecognizer`.
@MainActor
open class PanGestureRecognizer: GestureRecognizer {
  /// The number of columns or rows that the mouse must move for the gesture to begin, at least 1.
  public let minimumDistance: Int

  /// Creates a recogniser that is not attached to a view.
  ///
  /// - Parameters:
  ///   - minimumDistance: The number of columns or rows that the mouse must move first. Values below 1 count as 1.
  ///   - action: A closure called for each state of the gesture.
  public init(minimumDistance: Int = 2, _ action: @escaping @MainActor (PanGestureRecognizer) -> Void) {
    self.minimumDistance = max(1, minimumDistance)
    super.init { recognizer in
      guard let pan = recognizer as? PanGestureRecognizer else { return }
      DisplayCallOut.note(closure: PanAction(call: action))
      action(pan)
    }
  }

  /// The number of columns and rows that the mouse has moved since the touch began.
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

/// Wraps the action so that records can name it.
private struct PanAction {
  let call: @MainActor (PanGestureRecognizer) -> Void
}
