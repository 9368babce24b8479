// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
public import Foundation
public import RunLoopCore

// Background operations of a file handle, which notify on the run loop of the calling thread. Foundation on Linux
// always notifies on the main thread. The loop stays alive in the modes until the notification is posted.
//
// Each method has two overloads. An array literal selects ours, because Foundation's takes an optional. An optional
// array of our modes selects the second, and `nil` alone selects Foundation's.
extension FileHandle {
  /// Reads the next available data in the background, and posts a notification on the calling thread's loop.
  ///
  /// The notification is `FileHandle.readCompletionNotification`. Its data, up to 64 KiB, is stored under
  /// `NSFileHandleNotificationDataItem`. The data is empty at the end of the file and after an error, whose number is
  /// stored under `"NSFileHandleError"`. A handle should have only one background activity at a time, and must stay
  /// open until it is finished. Can be called from any thread.
  ///
  /// - Parameter modes: The modes of the calling thread's loop in which the notification is posted.
  ///
  /// The corresponding Foundation method has the same name.
  public func readInBackgroundAndNotify(forModes modes: [RunLoop.Mode]) {
    let site = crl_call_site()
    BackgroundActivity.begin(.read, of: self, in: modes, from: Origin(site: site))
  }

  /// Reads to the end of the file in the background, and posts a notification on the calling thread's loop.
  ///
  /// The notification is `NSFileHandleReadToEndOfFileCompletion`. Apart from the amount of data, this behaves like
  /// `readInBackgroundAndNotify(forModes:)`.
  ///
  /// The corresponding Foundation method has the same name.
  public func readToEndOfFileInBackgroundAndNotify(forModes modes: [RunLoop.Mode]) {
    let site = crl_call_site()
    BackgroundActivity.begin(.readToEnd, of: self, in: modes, from: Origin(site: site))
  }

  /// Accepts a connection on this listening socket in the background, and notifies on the calling thread's loop.
  ///
  /// The notification is `NSFileHandleConnectionAccepted`, and stores the handle of the connection under
  /// `NSFileHandleNotificationFileHandleItem`. Otherwise, this behaves like `readInBackgroundAndNotify(forModes:)`.
  ///
  /// The corresponding Foundation method has the same name.
  public func acceptConnectionInBackgroundAndNotify(forModes modes: [RunLoop.Mode]) {
    let site = crl_call_site()
    BackgroundActivity.begin(.accept, of: self, in: modes, from: Origin(site: site))
  }

  /// Waits in the background until data is available, and posts a notification on the calling thread's loop.
  ///
  /// The notification is `NSFileHandleDataAvailable`. No data is read. Otherwise, this behaves like
  /// `readInBackgroundAndNotify(forModes:)`.
  ///
  /// The corresponding Foundation method has the same name.
  public func waitForDataInBackgroundAndNotify(forModes modes: [RunLoop.Mode]) {
    let site = crl_call_site()
    BackgroundActivity.begin(.wait, of: self, in: modes, from: Origin(site: site))
  }

  /// Behaves like the other overload, where `nil` means the default mode.
  @_disfavoredOverload
  public func readInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?) {
    let site = crl_call_site()
    BackgroundActivity.begin(.read, of: self, in: modes ?? [.default], from: Origin(site: site))
  }

  /// Behaves like the other overload, where `nil` means the default mode.
  @_disfavoredOverload
  public func readToEndOfFileInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?) {
    let site = crl_call_site()
    BackgroundActivity.begin(.readToEnd, of: self, in: modes ?? [.default], from: Origin(site: site))
  }

  /// Behaves like the other overload, where `nil` means the default mode.
  @_disfavoredOverload
  public func acceptConnectionInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?) {
    let site = crl_call_site()
    BackgroundActivity.begin(.accept, of: self, in: modes ?? [.default], from: Origin(site: site))
  }

  /// Behaves like the other overload, where `nil` means the default mode.
  @_disfavoredOverload
  public func waitForDataInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?) {
    let site = crl_call_site()
    BackgroundActivity.begin(.wait, of: self, in: modes ?? [.default], from: Origin(site: site))
  }
}
