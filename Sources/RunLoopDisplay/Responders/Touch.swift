// SPDX-License-Identifier: Apache-2.0

/// A mouse button that is held down, from the press to the release.
///
/// The touch belongs to the view that was hit by the press, wherever it moves afterwards.
///
/// The corresponding class of UIKit is `UITouch`.
@MainActor
public final class Touch {
  /// The phases of a touch.
  public enum Phase: Hashable, Sendable {
    /// The button was pressed, has moved, was released, or the touch was taken from its view.
    case began, moved, ended, cancelled
  }

  /// The button.
  public let button: MouseEvent.Button
  /// The window in which the button was pressed.
  public private(set) weak var window: Window?
  /// The view that was hit; nil if it no longer exists.
  public private(set) weak var view: View?
  /// Where in the window the button was pressed.
  public let start: Point
  /// Where in the window the touch is; it may be outside.
  public internal(set) var location: Point
  /// The keys that are held down.
  public internal(set) var modifiers: KeyModifiers
  /// The phase of the touch.
  ///
  /// For its view it may be cancelled while gestures go on.
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

  /// Where the touch is, in the coordinates of a view of its window.
  public func location(in view: View) -> Point { view.convert(location, from: nil) }

  /// How far the touch is from where it began.
  public var translation: Point { location - start }
}
