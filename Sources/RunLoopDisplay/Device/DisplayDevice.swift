// SPDX-License-Identifier: Apache-2.0

/// A screen of cells with a keyboard and a mouse: a ``Terminal``, or an emulated one in tests.
///
/// The main loop serves a device in the common modes, through a source 1 that the device provides. The device calls
/// its client on the main thread. Frames are written one at a time, without blocking.
@MainActor
public protocol DisplayDevice: AnyObject {
  /// The size in cells, at least 1 by 1.
  var size: Size { get }

  /// The object that the device calls, which is referenced weakly.
  var client: (any DisplayDeviceClient)? { get set }

  /// Opens the device, after which frames can be presented and the client receives its input.
  ///
  /// - Throws: A ``DisplayError`` that describes why the device cannot be used.
  func open() throws(DisplayError)

  /// Restores the original state of the device, unless it is already closed.
  func close()

  /// Restores the device and stops the process, as Ctrl-Z does in a shell. It is opened again when the process
  /// continues.
  func suspend()

  /// Whether a frame can be presented, because no other one is in progress.
  var isReadyForFrame: Bool { get }

  /// Shows a frame, of which only the differences from the previous frame are written.
  ///
  /// - Parameters:
  ///   - grid: The contents of the screen, in the device's size.
  ///   - scrolls: The rows that have moved since the previous frame. They reduce the output, but do not affect the
  ///     result.
  /// - Precondition: ``isReadyForFrame`` is true.
  /// - Returns: The number of bytes that have been or will be written, or 0 if there are no differences.
  @discardableResult
  func present(_ grid: borrowing Grid, scrolls: [ScrollHint]) -> Int

  /// Causes the next frame to be written in full, regardless of what the screen shows.
  func repaint()

  /// The mouse events that the device reports.
  var mouseTracking: MouseTracking { get set }

  /// The cursor, which is shown with the next frame, or `nil` if it is hidden and its position does not matter.
  var cursor: TextCursor? { get set }

  /// Sets the title of the device's window, if it has one, until the device is closed.
  func setTitle(_ title: String)

  /// Rings the bell.
  func ringBell()

  /// Copies a text to the clipboard of the user's computer, if the device supports and allows it.
  func copy(_ text: String)
}

extension DisplayDevice {
  /// The default implementation for a device without a cursor.
  public var cursor: TextCursor? {
    get { nil }
    set {}
  }
  /// Does nothing.
  public func setTitle(_ title: String) {}
  /// Does nothing.
  public func ringBell() {}
  /// Does nothing.
  public func copy(_ text: String) {}

  /// The default implementation for a device that always reports buttons.
  public var mouseTracking: MouseTracking {
    get { .buttons }
    set {}
  }
}

/// The mouse events that a device reports.
public enum MouseTracking: Hashable, Sendable {
  /// No events. The terminal itself handles the mouse, for example to select text.
  case off
  /// Presses, releases, the wheel, and movements with a button held down.
  case buttons
  /// All of these, and movements without a button.
  case movements
}

/// Rows that have moved within a rectangle of the screen.
public struct ScrollHint: Hashable, Sendable {
  /// The part of the screen in which rows have moved.
  public var area: Rect
  /// The number of rows, which is positive if the contents moved up, as when scrolling forward in a list.
  public var rows: Int

  /// Creates a hint.
  public init(area: Rect, rows: Int) {
    self.area = area
    self.rows = rows
  }
}

/// The client of a device, which is called on the main thread.
@MainActor
public protocol DisplayDeviceClient: AnyObject {
  /// Called when the device has read input, from within its source 1, where the client should only queue the events.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - bytes: The number of bytes read, or 0 if the events result from a signal or from a timeout after an escape.
  ///   - events: The events in order, possibly none.
  func device(_ device: any DisplayDevice, didRead bytes: Int, events: [InputEvent])

  /// Called when a frame can be presented again. It is not called if the device has been ready all along.
  func deviceIsReadyForFrame(_ device: any DisplayDevice)

  /// Called when the device has learned something about itself that changes how the screen should be written.
  ///
  /// The client should present a frame, even an unchanged one. Otherwise, the difference shows with its next frame.
  func deviceNeedsFrame(_ device: any DisplayDevice)

  /// Called before the process is stopped, after which the device is restored.
  func deviceWillSuspend(_ device: any DisplayDevice)

  /// Called after the process has continued and the device has been reopened. The next frame is written in full.
  func deviceDidResume(_ device: any DisplayDevice)
}

extension DisplayDeviceClient {
  /// Does nothing.
  public func deviceNeedsFrame(_ device: any DisplayDevice) {}
}
