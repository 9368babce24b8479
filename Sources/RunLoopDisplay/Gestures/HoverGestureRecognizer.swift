// SPDX-License-Identifier: Apache-2.0

/// A gesture recogniser for hovering with the mouse above a view, without a button held down.
///
/// The gesture begins when the mouse enters the view, changes while it moves there, and ends when it leaves the view
/// or the terminal window. It requires the device to track the mouse: set ``Application/mouseTracking`` to
/// ``MouseTracking/movements``.
///
/// The corresponding class of UIKit is `UIHoverGestureRecognizer`.
@MainActor
open class HoverGestureRecognizer: GestureRecognizer {
  /// Always false, because the gesture does not involve a button.
  override open func shouldReceive(_ touch: Touch) -> Bool { false }

  final func hover(_ state: State, _ location: Point) {
    place(at: location, begins: state == .began)
    self.state = state
  }
}
