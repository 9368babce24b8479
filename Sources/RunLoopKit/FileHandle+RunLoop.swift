// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
public import Foundation
public import RunLoopCore

// What a file handle does in the background and tells on the run loop of the thread that asked. Foundation on Linux
// tells it on the main thread, whoever asked. The loop stays alive in the modes until it has been notified.
//
// Each method is there twice: a list that is written down in the call means ours, as it is closer to what is asked for
// than Foundation's optional one; an optional list of our modes comes by the second; `nil` alone is Foundation's.
extension FileHandle {
  /// Reads the next available data in the background, and posts it on the calling thread's loop.
  ///
  /// The notification is `FileHandle.readCompletionNotification`. It has the data, at most 64 KiB, under
  /// `NSFileHandleNotificationDataItem`: no bytes at the end and after an error, whose number is under
  /// `"NSFileHandleError"`. A handle should have only one activity in the background at a time, and stays open until
  /// that is over. Can be called from any thread.
  ///
  /// - Parameter modes: The modes of the calling thread's loop in which the notification is posted.
  ///
  /// The corresponding Foundation method has the same name.
  public func readInBackgroundAndNotify(forModes modes: [RunLoop.Mode]) {
    let site = crl_call_site()
    BackgroundActivity.begin(.read, of: self, in: modes, from: Origin(site: site))
  }

  /// Reads until the end, in the background, and posts all data on the calling thread's loop.
  ///
  /// The notification is `NSFileHandleReadToEndOfFileCompletion`. Except for the size, this is like
  /// `readInBackgroundAndNotify(forModes:)`.
  ///
  /// The corresponding Foundation method has the same name.
  public func readToEndOfFileInBackgroundAndNotify(forModes modes: [RunLoop.Mode]) {
    let site = crl_call_site()
    BackgroundActivity.begin(.readToEnd, of: self, in: modes, from: Origin(site: site))
  }

  /// Accepts a connection of this listening socket, in the background, and posts its handle on the calling thread's
  /// loop.
  ///
  /// The notification is `NSFileHandleConnectionAccepted`; the handle is under
  /// `NSFileHandleNotificationFileHandleItem`. Otherwise this is like `readInBackgroundAndNotify(forModes:)`.
  ///
  /// The corresponding Foundation method has the same name.
  public func acceptConnectionInBackgroundAndNotify(forModes modes: [RunLoop.Mode]) {
    let site = crl_call_site()
    BackgroundActivity.begin(.accept, of: self, in: modes, from: Origin(site: site))
  }

  /// Waits in the background until there is something to read, and reports it on the calling thread's loop.
  ///
  /// The notification is `NSFileHandleDataAvailable`; nothing is read. Otherwise this is like
  /// `readInBackgroundAndNotify(forModes:)`.
  ///
  /// The corresponding Foundation method has the same name.
  public func waitForDataInBackgroundAndNotify(forModes modes: [RunLoop.Mode]) {
    let site = crl_call_site()
    BackgroundActivity.begin(.wait, of: self, in: modes, from: Origin(site: site))
  }

  /// The same as the other method of this name; without modes, in the default mode.
  @_disfavoredOverload
  public func readInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?) {
    let site = crl_call_site()
    BackgroundActivity.begin(.read, of: self, in: modes ?? [.default], from: Origin(site: site))
  }

  /// The same as the other method of this name; without modes, in the default mode.
  @_disfavoredOverload
  public func readToEndOfFileInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?) {
    let site = crl_call_site()
    BackgroundActivity.begin(.readToEnd, of: self, in: modes ?? [.default], from: Origin(site: site))
  }

  /// The same as the other method of this name; without modes, in the default mode.
  @_disfavoredOverload
  public func acceptConnectionInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?) {
    let site = crl_call_site()
    BackgroundActivity.begin(.accept, of: self, in: modes ?? [.default], from: Origin(site: site))
  }

  /// The same as the other method of this name; without modes, in the default mode.
  @_disfavoredOverload
  public func waitForDataInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?) {
    let site = crl_call_site()
    BackgroundActivity.begin(.wait, of: self, in: modes ?? [.default], from: Origin(site: site))
  }
}
