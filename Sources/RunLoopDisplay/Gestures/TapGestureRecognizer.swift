// SPDX-License-Identifier: Apache-2.0

/// Recognises one tap or several: presses and releases in one place.
///
/// The corresponding class of UIKit is `UITapGestureRecognizer`.
@MainActor
open class TapGestureRecognizer: GestureRecognizer {
  /// How many taps make the gesture.
  public let tapsRequired: Int
  /// How soon after a release the next press has to follow.
  public static let maximumInterval = Duration.milliseconds(300)
  private var tap: TapState

  /// Makes a recogniser that is on no view.
  ///
  /// - Parameters:
  ///   - tapsRequired: How many taps make the gesture; less than one counts as one.
  ///   - action: Called when the gesture was recognised.
  public init(tapsRequired: Int = 1, _ action: @escaping @MainActor (TapGestureRecognizer) -> Void) {
    self.tapsRequired = max(1, tapsRequired)
    tap = TapState(required: tapsRequired, slack: 1)
    super.init { recognizer in
      guard let tap = recognizer as? TapGestureRecognizer else { return }
      DisplayCallOut.note(closure: TapAction(call: action))
      action(tap)
    }
  }

  /// Several taps are recognised although the first of them is a tap by itself.
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

/// The action by itself, so that a record names it.
private struct TapAction {
  let call: @MainActor (TapGestureRecognizer) -> Void
}
