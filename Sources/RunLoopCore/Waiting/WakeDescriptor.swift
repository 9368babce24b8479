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

extension OwnedDescriptor {
  /// Throws unless the process can have a number of further descriptors at this moment.
  ///
  /// For code that has to call a library that ends the process if it gets none.
  package static func requireSpare(_ count: Int) throws(SystemError) {
    try requireClock()
    // Held all at once, and then free again.
    var spare: [OwnedDescriptor] = []
    for _ in 0..<count { spare.append(OwnedDescriptor(try SystemCall.eventCreate.make { crl_event_create() })) }
  }

  /// Checks that a clock can be made and set, which some filters forbid, and without which Core Foundation ends the
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

  /// Adds one, which wakes a thread that waits for it.
  ///
  /// The write cannot fail: the counter would have to be near its limit.
  func wake() {
    _ = try? SystemCall.eventWrite.makeUninterrupted { crl_event_write(descriptor.number) }
  }
}
