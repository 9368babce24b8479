// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem

/// A descriptor with an owner: it is closed once, when the last reference is released.
package final class OwnedDescriptor: Sendable {
  package let number: Int32

  package init(_ number: Int32) {
    self.number = number
  }

  deinit {
    _ = crl_close(number)
  }
}

/// A counter that a thread can wait for in an epoll set.
final class WakeDescriptor: Sendable {
  let descriptor: OwnedDescriptor

  init() throws(SystemError) {
    descriptor = OwnedDescriptor(try SystemCall.eventCreate.make { crl_event_create() })
  }

  /// Adds one, which wakes a thread that waits for it.
  ///
  /// The write cannot fail: the counter would have to be near its limit.
  func wake() {
    _ = try? SystemCall.eventWrite.makeUninterrupted { crl_event_write(descriptor.number) }
  }
}
