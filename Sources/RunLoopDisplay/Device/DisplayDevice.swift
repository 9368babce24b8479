// SPDX-License-Identifier: Apache-2.0

/// A screen of cells with a keyboard and a mouse: a ``Terminal``, or an emulated one in tests.
///
/// The main loop serves a device, in the common modes, through a source 1 of the device's own; the device calls its
/// client on the main thread. Frames are written without blocking, one at a time.
@MainActor
public protocol DisplayDevice: AnyObject {
  /// The size in cells; at least 1 by 1.
  var size: Size { get }

  /// What the device calls; held weakly.
  var client: (any DisplayDeviceClient)? { get set }

  /// Takes the device: from now on frames can be presented, and its input reaches the client.
  ///
  /// - Throws: ``DisplayError``, which names what the device lacks.
  func open() throws(DisplayError)

  /// Gives the device back as it was found. Calling it again has no effect.
  func close()

  /// Gives the device back for a time and stops the process, as Ctrl-Z does in a shell; taken again when the process
  /// continues.
  func suspend()

  /// Whether a frame can be presented: none is under way.
  var isReadyForFrame: Bool { get }

  /// Shows a frame.
  ///
  /// Only what differs from the frame before is written.
  ///
  /// - Parameters:
  ///   - grid: What is to be seen, in the device's size.
  ///   - scrolls: What has moved since the frame before: it saves bytes, and never changes what is seen.
  /// - Precondition: ``isReadyForFrame``.
  /// - Returns: The bytes that were, or will be, written; 0 if nothing differs.
  @discardableResult
  func present(_ grid: borrowing Grid, scrolls: [ScrollHint]) -> Int

  /// Lets the next frame be written in full, whatever is on the screen.
  func repaint()

  /// What the device reports of the mouse.
  var mouseTracking: MouseTracking { get set }

  /// The cursor, shown with the next frame; nil means that it is hidden, and anywhere.
  var cursor: TextCursor? { get set }

  /// Sets the title of the window that the device is shown in, if it has one, until the device is given back.
  func setTitle(_ title: String)

  /// Rings the bell.
  func ringBell()

  /// Puts a text on the clipboard of the user's computer, if the device has one and allows it.
  func copy(_ text: String)
}

extension DisplayDevice {
  /// A device without a cursor.
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

  /// A device that cannot change it reports the buttons.
  public var mouseTracking: MouseTracking {
    get { .buttons }
    set {}
  }
}

/// What a device reports of the mouse.
public enum MouseTracking: Hashable, Sendable {
  /// Nothing: the mouse is the terminal's own, which selects text with it.
  case off
  /// Presses, releases, the wheel, and movements while a button is held down.
  case buttons
  /// Every movement too.
  case movements
}

/// Rows that have moved within a rectangle of the screen.
public struct ScrollHint: Hashable, Sendable {
  /// The part of the screen whose rows have moved.
  public var area: Rect
  /// The number of rows; if it is positive, the contents moved up, as when a list is scrolled forward.
  public var rows: Int

  /// Makes a hint.
  public init(area: Rect, rows: Int) {
    self.area = area
    self.rows = rows
  }
}

/// The client that a device calls, on the main thread.
@MainActor
public protocol DisplayDeviceClient: AnyObject {
  /// The device has read its input once: called within its source 1, which is no place for the client's own work.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - bytes: How many bytes were read; 0 if the events have another origin: a signal, or a time-out after an escape.
  ///   - events: What they mean, in order; possibly nothing.
  func device(_ device: any DisplayDevice, didRead bytes: Int, events: [InputEvent])

  /// A frame can be presented again, where none could be before: a device that has stayed ready does not say so.
  func deviceIsReadyForFrame(_ device: any DisplayDevice)

  /// What is shown would be written otherwise by now, as the device has said more about itself: a frame is to be
  /// presented, even if it is the same as before.
  ///
  /// If a client does not implement it, the difference shows with its next frame.
  func deviceNeedsFrame(_ device: any DisplayDevice)

  /// The process is about to be stopped: the device has been given back.
  func deviceWillSuspend(_ device: any DisplayDevice)

  /// The process continues: the device has been taken again, and its next frame is written in full.
  func deviceDidResume(_ device: any DisplayDevice)
}

extension DisplayDeviceClient {
  /// Does nothing.
  public func deviceNeedsFrame(_ device: any DisplayDevice) {}
}
