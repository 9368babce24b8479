// SPDX-License-Identifier: Apache-2.0

/// A gesture recogniser for a quick movement in one direction with the button held down.
///
/// The gesture is recognised when the mouse has moved ``minimumDistance`` cells in the direction, and at most half as
/// many to either side, within ``maximumDuration``.
///
/// The corresponding class of UIKit is `UISwipeGestureRecognizer`.
@MainActor
open class SwipeGestureRecognizer: GestureRecognizer {
  /// The directions of a swipe.
  public enum Direction: Hashable, Sendable {
    /// The direction in which the mouse moves.
    case left, right, up, down
  }

  /// The direction of the swipe.
  public let direction: Direction
  /// The number of columns or rows that the mouse must move.
  public static let minimumDistance = 4
  /// The maximum duration of a swipe.
  public static let maximumDuration = Duration.milliseconds(500)

  /// Creates a recogniser that is not attached to a view.
  ///
  /// - Parameters:
  ///   - direction: The direction of the swipe.
  ///   - action: A closure called when the gesture is recognised.
  public init(_ direction: Direction, _ action: @escaping @MainActor (SwipeGestureRecognizer) -> Void) {
    self.direction = direction
    super.init { recognizer in
      guard let swipe = recognizer as? SwipeGestureRecognizer else { return }
      DisplayCallOut.note(closure: SwipeAction(call: action))
      action(swipe)
    }
  }

  override open func touchesBegan(_ touch: Touch) { startTimer(Self.maximumDuration) }

  override open func touchesMoved(_ touch: Touch) {
    let way = touch.translation
    let (along, aside) =
      switch direction {
      case .left: (-way.x, way.y)
      case .right: (way.x, way.y)
      case .up: (-way.y, way.x)
      case .down: (way.y, way.x)
      }
    if aside.magnitude > Self.minimumDistance / 2 {
      state = .failed
    } else if along >= Self.minimumDistance {
      state = .recognized
    }
  }

  override open func touchesEnded(_ touch: Touch) { state = .failed }

  override open func timeOut() { state = .failed }

  override open func reset() { stopTimer() }
}

/// Wraps the action so that records can name it.
private struct SwipeAction {
  let call: @MainActor (SwipeGestureRecognizer) -> Void
}
