// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopCore

extension RunLoopCore.Port {
  /// Posted once when a port has become invalid, on the invalidating thread, with the port as its object.
  ///
  /// The port has been removed from all loops. The corresponding Foundation property is `didBecomeInvalidNotification`,
  /// and the notification's name is the same.
  public static var didBecomeInvalidNotification: Notification.Name { Foundation.Port.didBecomeInvalidNotification }
}
