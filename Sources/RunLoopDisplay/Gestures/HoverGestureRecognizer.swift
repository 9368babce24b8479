// SPDX-License-Identifier: Apache-2.0

/// Recognises that the mouse is above a view, without a button held down.
///
/// The gesture begins when the mouse enters the view, changes while it moves there, and ends when it leaves the view or
/// the terminal's window. The device has to follow the mouse: set ``Application/mouseTracking`` to
/// ``MouseTracking/movements``.
///
/// The corresponding class of UIKit is `UIHoverGestureRecognizer`.
@MainActor
open class HoverGestureRecognizer: GestureRecognizer {
  /// A button is no part of the gesture.
  override open func shouldReceive(_ touch: Touch) -> Bool { false }

  final func hover(_ state: State, _ location: Point) {
    place(at: location, begins: state == .began)
    self.state = state
  }
}
