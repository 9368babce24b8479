// SPDX-License-Identifier: Apache-2.0

/// A gesture recogniser for one or more taps: presses and releases in one place.
///
/// The corresponding class of UIKit is `UITapGestureRecognizer`.
@MainActor
open class TapGestureRecognizer: GestureRecognizer {
  /// The number of taps that make up the gesture.
  public let tapsRequired: Int
  /// The maximum time between a release and the next press.
  public static let maximumInterval = Duration.milliseconds(300)
  private var tap: TapState

  /// Creates a recogniser that is not attached to a view.
  ///
  /// - Parameters:
  ///   - tapsRequired: The number of taps that make up the gesture. Values below 1 count as 1.
  ///   - action: A closure called when the gesture is recognised.
  public init(tapsRequired: Int = 1, _ action: @escaping @MainActor (TapGestureRecognizer) -> Void) {
    self.tapsRequired = max(1, tapsRequired)
    tap = TapState(required: tapsRequired, slack: 1)
    super.init { recognizer in
      guard let tap = recognizer as? TapGestureRecognizer else { return }
      DisplayCallOut.note(closure: TapAction(call: action))
      action(tap)
    }
  }

  /// Whether the other gesture fails, which is false for a tap gesture that requires more taps.
  override open func canPrevent(_ other: GestureRecognizer) -> Bool {
    if let other = other as? TapGestureRecognizer, other.tapsRequired > tapsRequired { return false }
    return super.canPrevent(other)
  }

  override open var isWaitingForTouch: Bool { tap.phase == .between }

  override open func touchesBegan(_ touch: Touch) {
    stopTimer()
    perform(tap.press(at: touch.location))
  }

  override open func touchesMoved(_ touch: Touch) { perform(tap.move(to: touch.location)) }

  override open func touchesEnded(_ touch: Touch) { perform(tap.release(at: touch.location)) }

  override open func timeOut() { perform(tap.timeOut()) }

  override open func reset() { tap.reset() }

  private func perform(_ action: TapState.Action) {
    switch action {
    case .nothing: break
    case .recognize: state = .recognized
    case .fail: state = .failed
    case .wait: startTimer(Self.maximumInterval)
    }
  }
}

/// Wraps the action so that records can name it.
private struct TapAction {
  let call: @MainActor (TapGestureRecognizer) -> Void
}
