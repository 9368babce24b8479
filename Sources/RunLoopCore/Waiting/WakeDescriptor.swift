// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem

/// A descriptor that is closed when the last reference to this object is released.
package final class OwnedDescriptor: Sendable {
  package let number: Int32

  package init(_ number: Int32) {
    self.number = number
  }

  deinit {
    _ = crl_close(number)
  }
}

extension OwnedDescriptor {
  /// Throws unless the process can currently open `count` more descriptors.
  ///
  /// Call it before a call to a library that ends the process if it cannot open a descriptor.
  package static func requireSpare(_ count: Int) throws(SystemError) {
    try requireClock()
    // All of them stay open until the function returns.
    var spare: [OwnedDescriptor] = []
    for _ in 0..<count { spare.append(OwnedDescriptor(try SystemCall.eventCreate.make { crl_event_create() })) }
  }

  /// Throws unless a clock can be created and set; if a system call filter forbids this, Core Foundation ends the
  /// process.
  private static func requireClock() throws(SystemError) {
    let clock = OwnedDescriptor(try SystemCall.timerCreate.make { crl_timer_create() })
    _ = try SystemCall.timerSet.make { crl_timer_set(clock.number, 0) }
  }
}

/// A counter that a thread can wait for in an epoll set.
final class WakeDescriptor: Sendable {
  let descriptor: OwnedDescriptor

  init() throws(SystemError) {
    descriptor = OwnedDescriptor(try SystemCall.eventCreate.make { crl_event_create() })
  }

  /// Adds one to the counter, which wakes a thread that waits for it.
  ///
  /// This cannot fail unless the counter is near its limit.
  func wake() {
    _ = try? SystemCall.eventWrite.makeUninterrupted { crl_event_write(descriptor.number) }
  }
}
