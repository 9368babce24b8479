// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Dispatch
import RunLoopCore
import Synchronization

/// A sleep until an instant of a clock that may advance differently from the loops' clock.
protocol ClockedSleep: AnyObject, Sendable {
  /// Recomputes the sleep's deadline on the loop's clock; called on any thread, with no lock held.
  func deriveDate()
}

/// The sleeps until an instant of another clock, such as `ContinuousClock`, which advances during system suspend.
///
/// A loop sleeps until a tick of its own clock, which stops during suspend. When the system resumes, the tick of each
/// of these sleeps is recomputed from its own clock. The first sleep creates the descriptor that reports a resume;
/// Dispatch watches it for the lifetime of the process.
final class ClockedSleeps: Sendable {
  static var shared: ClockedSleeps { stored.value }
  private static let stored = PerProcess { ClockedSleeps() }

  static func prepareForForks() { _ = stored }
  static func forgetParents() { stored.forget() }

  private struct Entry {
    weak var sleep: (any ClockedSleep)?
  }

  private struct State {
    var sleeps: [ObjectIdentifier: Entry] = [:]
    var hasWatch = false
    var watch: (any DispatchSourceRead)?
  }

  private let state = ThreadLocked(State())

  /// The number of sleeps, for tests.
  var count: Int { state.withLock { $0.sleeps.count } }

  /// Recomputes the deadline of a sleep after each system suspend, until ``remove(_:)`` is called.
  func add(_ sleep: any ClockedSleep) {
    let isFirst = state.withLock { state in
      state.sleeps[ObjectIdentifier(sleep)] = Entry(sleep: sleep)
      defer { state.hasWatch = true }
      return !state.hasWatch
    }
    if isFirst { watch() }
  }

  /// Called when a sleep has ended, in its deinitializer at the latest.
  func remove(_ sleep: any ClockedSleep) {
    _ = state.withLock { $0.sleeps.removeValue(forKey: ObjectIdentifier(sleep)) }
  }

  /// Recomputes the deadline of every sleep, after the system was suspended or its wall clock was set.
  ///
  /// - Complexity: O(n log n) in the number of sleeps.
  func clocksMayHaveJumped() {
    let sleeps = state.withLock { $0.sleeps.values.compactMap(\.sleep) }
    for sleep in sleeps { sleep.deriveDate() }
    OrphanedSleeps.shared.deriveDates()
  }

  /// Watches for the end of a system suspend.
  ///
  /// If no descriptor can be created, sleeps end late by the duration of a suspend until another sleep is added.
  private func watch() {
    // libdispatch ends the process if it cannot make a counter for itself.
    let hasSpare = (try? OwnedDescriptor.requireSpare(1)) != nil
    let number = hasSpare ? crl_clock_watch_create() : -1
    // The next sleep tries again.
    guard number >= 0 else { return state.withLock { $0.hasWatch = false } }
    let source = DispatchSource.makeReadSource(fileDescriptor: number, queue: .global())
    source.setEventHandler { [weak self] in
      crl_clock_watch_renew(number)
      self?.clocksMayHaveJumped()
    }
    state.withLock { $0.watch = source }
    source.resume()
  }
}
