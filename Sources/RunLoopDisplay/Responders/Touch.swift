// SPDX-License-Identifier: Apache-2.0

/// A mouse button that is held down, from the press to the release.
///
/// A touch belongs to the view that the press hit, wherever the mouse moves afterwards.
///
/// The corresponding class of UIKit is `UITouch`.
@MainActor
public final class Touch {
  /// The phases of a touch.
  public enum Phase: Hashable, Sendable {
    /// The button was pressed, the mouse moved, the button was released, or the touch was cancelled.
    case began, moved, ended, cancelled
  }

  /// The button.
  public let button: MouseEvent.Button
  /// The window in which the button was pressed.
  public private(set) weak var window: Window?
  /// The view that was hit, or `nil` if it no longer exists.
  public private(set) weak var view: View?
  /// The location in the window at which the button was pressed.
  public let start: Point
  /// The location in the window, which may be outside its bounds.
  public internal(set) var location: Point
  /// The modifier keys that are held down.
  public internal(set) var modifiers: KeyModifiers
  /// The phase of the touch, initially `began`.
  ///
  /// It is cancelled for the view when a gesture takes over, even if the gesture continues.
  public internal(set) var phase = Phase.began

  var delivery = TouchDelivery()

  init(_ button: MouseEvent.Button, _ modifiers: KeyModifiers, at location: Point, on view: View, in window: Window) {
    self.button = button
    self.modifiers = modifiers
    self.location = location
    self.view = view
    self.window = window
    start = location
  }

  /// Returns the location of the touch in the coordinates of a view in its window.
  public func location(in view: View) -> Point { view.convert(location, from: nil) }

  /// The distance from the start of the touch to its current location.
  public var translation: Point { location - start }
}
