// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC

/// Ends a sleep that another loop sleeps for ours, and notifies that loop of what ours waits for.
package protocol SleepGate: AnyObject, Sendable {
  /// Whether nobody waits at the gate any more.
  var isRetired: Bool { get set }
  /// Whether the watcher is notified of readiness only when it begins.
  var isWatchedByEdge: Bool { get }
  /// The number of a counter that wakes the watcher, and stays open as long as our loop; −1 if the watcher has none,
  /// and has to watch our loop's.
  var wakeNumber: Int32 { get }

  /// Opens the gate until it is closed.
  ///
  /// Can be called from any thread.
  func open()

  /// Whether what is watched opened the gate before ``open()`` did, as far as that is known; called on the loop's
  /// thread, before the gate is closed.
  var wasOpenedByEvent: Bool { get }

  /// Closes the gate, except for what is watched.
  ///
  /// Called on the loop's thread. The caller looks for work after closing it, never before, because the gate may have
  /// been opened meanwhile.
  func close()

  /// Watches a descriptor, or none, and the time until a deadline; called on the loop's thread.
  func watch(_ descriptor: OwnedDescriptor?, until deadline: Tick)
}

extension SleepGate {
  package var wakeNumber: Int32 { -1 }
}

/// The descriptor that a foreign loop watches for one of ours: it is readable when ours has a reason to be served.
///
/// It is an epoll set that contains a counter, the set of the mode that waits, if that watches anything, and, if asked
/// for, a clock. A wake-up of a `CFRunLoop` is dropped unless the loop runs; an open gate stays open until it is
/// closed, even if nobody waits at that moment.
package final class Gate: SleepGate, @unchecked Sendable {
  // Sendable: the gate's own descriptors do not change; the variables belong to the loop's thread.

  private let epoll: OwnedDescriptor
  private let counter: WakeDescriptor
  private let clock: OwnedDescriptor?
  /// The set that is watched; it is held open, so that its number is not reused meanwhile.
  private var watched: OwnedDescriptor?
  private var deadline = Tick.never
  /// Whether nobody waits at the gate any more.
  package var isRetired = false

  package let isWatchedByEdge: Bool

  /// Makes a closed gate.
  ///
  /// - Parameters:
  ///   - keepsTime: Whether the gate opens at deadlines too.
  ///   - isWatchedByEdge: Whether a look before each wait finds what is ready already.
  package init(keepsTime: Bool, isWatchedByEdge: Bool = false) throws(SystemError) {
    self.isWatchedByEdge = isWatchedByEdge
    epoll = OwnedDescriptor(try SystemCall.epollCreate.make { crl_epoll_create() })
    counter = try WakeDescriptor()
    clock = keepsTime ? OwnedDescriptor(try SystemCall.timerCreate.make { crl_timer_create() }) : nil
    try control(EPOLL_CTL_ADD, counter.descriptor, Token.counter)
    if let clock {
      try control(EPOLL_CTL_ADD, clock, Token.clock)
      // A clock that cannot be set is useless, and is reported to the caller who makes the gate.
      _ = try SystemCall.timerSet.make { crl_timer_set(clock.number, 0) }
    }
  }

  private enum Token {
    static let counter: UInt64 = 0
    static let clock: UInt64 = 1
    static let watched: UInt64 = 2
  }

  /// The descriptor to be watched from outside, level-triggered or edge-triggered.
  package var descriptor: Int32 { epoll.number }

  /// An edge-triggered watcher is notified each time.
  package func open() { counter.wake() }

  package func close() {
    _ = try? SystemCall.eventRead.makeUninterrupted { crl_event_read(counter.descriptor.number) }
    // The kernel forgets the order of what is no longer ready when it is asked.
    if watched != nil { _ = firstReady() }
  }

  /// Whether the descriptor is readable now.
  var isOpen: Bool { firstReady() != nil }

  package var wasOpenedByEvent: Bool { watched != nil && firstReady() == Token.watched }

  /// What became ready first; the kernel keeps that order.
  private func firstReady() -> UInt64? {
    withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: 3) { events in
      let count = try? SystemCall.epollWait.make { crl_epoll_wait_milliseconds(epoll.number, events.baseAddress, 3, 0) }
      return (count ?? 0) > 0 ? events[0].data.u64 : nil
    }
  }

  /// If the descriptor cannot be watched, the gate stays open: the loop is then served repeatedly, and misses nothing.
  package func watch(_ descriptor: OwnedDescriptor?, until deadline: Tick) {
    do throws(SystemError) {
      if watched !== descriptor { try watchInstead(descriptor) }
      if deadline != self.deadline { try setClock(deadline) }
    } catch {
      Diagnostic.gate.report(
        "a hosted run loop cannot be waited for and is served repeatedly instead, which loses nothing and costs processor time: "
          + "\(error)")
      open()
    }
  }

  private func watchInstead(_ descriptor: OwnedDescriptor?) throws(SystemError) {
    if let watched { try? control(EPOLL_CTL_DEL, watched, Token.watched) }
    watched = nil
    guard let descriptor else { return }
    try control(EPOLL_CTL_ADD, descriptor, Token.watched)
    watched = descriptor
  }

  private func setClock(_ deadline: Tick) throws(SystemError) {
    guard let clock else { return }
    // Zero would mean no date at all.
    let date = deadline == .never ? 0 : max(1, deadline.nanoseconds)
    _ = try SystemCall.timerSet.make { crl_timer_set(clock.number, date) }
    self.deadline = deadline
  }

  private func control(_ operation: Int32, _ descriptor: OwnedDescriptor, _ token: UInt64) throws(SystemError) {
    _ = try SystemCall.epollControl.make {
      crl_epoll_control(epoll.number, operation, descriptor.number, EPOLLIN.rawValue, token)
    }
  }
}
