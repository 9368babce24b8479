// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc

/// What ends a sleep that another loop sleeps for ours, and notifies that loop of what ours waits for.
package protocol SleepGate: AnyObject, Sendable {
  /// Whether nobody waits at the gate any more.
  var isRetired: Bool { get set }
  /// Whether whoever watches is notified of what is ready only when it becomes so.
  var isWatchedByEdge: Bool { get }

  /// Opens the gate until it is closed.
  ///
  /// Any thread.
  func open()

  /// Closes the gate, but for what is watched.
  ///
  /// The loop's thread. Whoever closes it looks for work afterwards, never before: the gate may have been opened
  /// meanwhile.
  func close()

  /// Watches a descriptor, or none, and the time until a deadline. The loop's thread.
  func watch(_ descriptor: OwnedDescriptor?, until deadline: Tick)
}

/// What a foreign loop watches for one of ours: a descriptor that is readable when ours has a reason to be served.
///
/// It is an epoll set with a counter in it, the set of the mode that waits, as far as that watches anything, and, if
/// asked for, a clock. Unlike a wake-up of a `CFRunLoop`, which is dropped unless the loop runs, an open gate stays
/// open until it is closed: nobody need be waiting at that moment.
package final class Gate: SleepGate, @unchecked Sendable {
  // Sendable: the descriptors do not change; what is watched, and until when, belongs to the loop's thread.

  private let epoll: OwnedDescriptor
  private let counter: WakeDescriptor
  private let clock: OwnedDescriptor?
  /// The set that is watched, held open: its number means nothing else meanwhile.
  private var watched: OwnedDescriptor?
  private var deadline = Tick.never
  /// Nobody waits for the gate any more.
  package var isRetired = false

  package let isWatchedByEdge: Bool

  /// Makes a closed gate.
  ///
  /// - Parameters:
  ///   - keepsTime: Whether the gate opens at deadlines too.
  ///   - isWatchedByEdge: Whether what is ready already is to be found by a look before each wait.
  init(keepsTime: Bool, isWatchedByEdge: Bool = false) throws(SystemError) {
    self.isWatchedByEdge = isWatchedByEdge
    epoll = OwnedDescriptor(try SystemCall.epollCreate.make { crl_epoll_create() })
    counter = try WakeDescriptor()
    clock = keepsTime ? OwnedDescriptor(try SystemCall.timerCreate.make { crl_timer_create() }) : nil
    try control(EPOLL_CTL_ADD, counter.descriptor)
    if let clock { try control(EPOLL_CTL_ADD, clock) }
  }

  /// The descriptor to be watched from outside, level-triggered or edge-triggered.
  package var descriptor: Int32 { epoll.number }

  /// Who watches by the edge is notified each time.
  package func open() { counter.wake() }

  package func close() {
    _ = try? SystemCall.eventRead.makeUninterrupted { crl_event_read(counter.descriptor.number) }
  }

  /// What cannot be watched leaves the gate open: the loop is then served repeatedly, and misses nothing.
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
    if let watched { try? control(EPOLL_CTL_DEL, watched) }
    watched = nil
    guard let descriptor else { return }
    try control(EPOLL_CTL_ADD, descriptor)
    watched = descriptor
  }

  private func setClock(_ deadline: Tick) throws(SystemError) {
    guard let clock else { return }
    // Zero would be no date at all.
    let date = deadline == .never ? 0 : max(1, deadline.nanoseconds)
    _ = try SystemCall.timerSet.make { crl_timer_set(clock.number, date) }
    self.deadline = deadline
  }

  private func control(_ operation: Int32, _ descriptor: OwnedDescriptor) throws(SystemError) {
    _ = try SystemCall.epollControl.make {
      crl_epoll_control(epoll.number, operation, descriptor.number, EPOLLIN.rawValue, 0)
    }
  }
}
