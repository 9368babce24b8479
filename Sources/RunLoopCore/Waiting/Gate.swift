// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC

/// Ends another loop's sleep on behalf of this loop, and tracks what this loop waits for.
package protocol SleepGate: AnyObject, Sendable {
  /// Whether the gate is no longer in use.
  var isRetired: Bool { get set }
  /// Whether the watcher is edge-triggered: it is notified only when the gate becomes readable.
  var isWatchedByEdge: Bool { get }
  /// The number of a counter that wakes the watcher and stays open as long as this loop exists; −1 if the watcher has
  /// none and must watch this loop's counter.
  var wakeNumber: Int32 { get }

  /// Opens the gate until it is closed.
  ///
  /// Can be called from any thread.
  func open()

  /// Whether the watched descriptor opened the gate before ``open()`` did, as far as that is known; read on the loop's
  /// thread before the gate is closed.
  var wasOpenedByEvent: Bool { get }

  /// Closes the gate, which remains open if the watched descriptor is ready.
  ///
  /// Called on the loop's thread. The caller must check for work after closing the gate, not before, because the gate
  /// may be opened in between.
  func close()

  /// Watches a descriptor, if any, and a deadline; called on the loop's thread.
  func watch(_ descriptor: OwnedDescriptor?, until deadline: Tick)
}

extension SleepGate {
  package var wakeNumber: Int32 { -1 }
}

/// A descriptor that a foreign loop watches on behalf of a run loop: it is readable when the run loop must be served.
///
/// It is an epoll set that contains a counter, the set of the waiting mode if that mode watches descriptors, and
/// optionally a clock. A `CFRunLoop` drops a wake-up that arrives while it is not running, but an open gate stays open
/// until it is closed, even if no loop is waiting at that moment.
package final class Gate: SleepGate, @unchecked Sendable {
  // Sendable: the gate's own descriptors do not change; the variables are used only on the loop's thread.

  private let epoll: OwnedDescriptor
  private let counter: WakeDescriptor
  private let clock: OwnedDescriptor?
  /// The watched set, which is kept open so that its number is not reused.
  private var watched: OwnedDescriptor?
  private var deadline = Tick.never
  package var isRetired = false

  package let isWatchedByEdge: Bool

  /// Creates a closed gate.
  ///
  /// - Parameters:
  ///   - keepsTime: Whether the gate also opens at deadlines. Otherwise, deadlines are ignored.
  ///   - isWatchedByEdge: Whether the watcher is edge-triggered. The loop then checks for ready descriptors itself
  ///     before each wait. Defaults to `false`.
  package init(keepsTime: Bool, isWatchedByEdge: Bool = false) throws(SystemError) {
    self.isWatchedByEdge = isWatchedByEdge
    epoll = OwnedDescriptor(try SystemCall.epollCreate.make { crl_epoll_create() })
    counter = try WakeDescriptor()
    clock = keepsTime ? OwnedDescriptor(try SystemCall.timerCreate.make { crl_timer_create() }) : nil
    try control(EPOLL_CTL_ADD, counter.descriptor, Token.counter)
    if let clock {
      try control(EPOLL_CTL_ADD, clock, Token.clock)
      // Some filters allow creating a clock but not setting it. The initializer throws in that case.
      _ = try SystemCall.timerSet.make { crl_timer_set(clock.number, 0) }
    }
  }

  private enum Token {
    static let counter: UInt64 = 0
    static let clock: UInt64 = 1
    static let watched: UInt64 = 2
  }

  /// The descriptor for the foreign loop to watch, level-triggered or edge-triggered.
  package var descriptor: Int32 { epoll.number }

  /// Opens the gate; each call notifies an edge-triggered watcher.
  package func open() { counter.wake() }

  package func close() {
    _ = try? SystemCall.eventRead.makeUninterrupted { crl_event_read(counter.descriptor.number) }
    // Polling removes entries that are no longer ready from the kernel's ordered list.
    if watched != nil { _ = firstReady() }
  }

  /// Whether the descriptor is readable now.
  var isOpen: Bool { firstReady() != nil }

  package var wasOpenedByEvent: Bool { watched != nil && firstReady() == Token.watched }

  /// The token of the entry that became ready first, or nil if none is ready; the kernel keeps that order.
  private func firstReady() -> UInt64? {
    withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: 3) { events in
      let count = try? SystemCall.epollWait.make { crl_epoll_wait_milliseconds(epoll.number, events.baseAddress, 3, 0) }
      return (count ?? 0) > 0 ? events[0].data.u64 : nil
    }
  }

  /// Watches a descriptor and a deadline; if that fails, the gate stays open, so the loop is served repeatedly.
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
    // Zero would disarm the clock.
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
