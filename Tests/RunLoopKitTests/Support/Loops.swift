// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit

/// Runs a block on a `Thread`, and waits for its end.
@discardableResult
func onThread(_ block: @escaping @Sendable () -> Void) throws -> Thread {
  let thread = Thread(block: block)
  thread.start()
  try thread.join()
  return thread
}

/// Observes a notification until it is released.
final class Listener {
  private let token: any NSObjectProtocol

  init(_ name: Notification.Name, _ object: AnyObject? = nil, _ body: @escaping @Sendable (Notification) -> Void) {
    #if compiler(>=6.3)
      token = NotificationCenter.default.addObserver(forName: name, object: object, queue: nil, using: body)
    #else
      // In Swift 6.2, Foundation does not find observers of an object that is not an NSObject.
      let wanted = object.map { ObjectIdentifier($0) }
      token = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { notification in
        let object = notification.object.map { ObjectIdentifier($0 as AnyObject) }
        if wanted == nil || wanted == object { body(notification) }
      }
    #endif
  }

  deinit { NotificationCenter.default.removeObserver(token) }
}

final class ClosureDelegate: PortDelegate {
  private let body: (PortMessage) -> Void

  init(_ body: @escaping (PortMessage) -> Void) { self.body = body }

  func handle(_ message: PortMessage) { body(message) }
}
