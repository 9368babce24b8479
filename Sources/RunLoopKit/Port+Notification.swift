// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopCore

extension RunLoopCore.Port {
  /// Posted once when a port has become invalid, on the thread that invalidated it, with the port as its object.
  ///
  /// The port is in no loop any more. The corresponding Foundation property is `didBecomeInvalidNotification`, and the
  /// name is the same.
  public static var didBecomeInvalidNotification: Notification.Name { Foundation.Port.didBecomeInvalidNotification }
}
