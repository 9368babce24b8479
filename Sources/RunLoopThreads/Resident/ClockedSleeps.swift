// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Dispatch
import RunLoopCore
import Synchronization

/// A sleep until an instant of a clock that may count differently from the loops' clock.
protocol ClockedSleep: AnyObject, Sendable {
  /// Derives the sleep's date on the loop's clock again; called on any thread, under no lock.
  func deriveDate()
}

/// The sleeps that last until an instant of another clock than the loops', such as `ContinuousClock`, which goes on
/// while the system is suspended.
///
/// A loop sleeps until a tick of its own clock, which stands still meanwhile: when the system resumes, the tick of each
/// of these sleeps is derived again from its own clock. The descriptor that reports it is made for the first sleep, and
/// stays for as long as the process; Dispatch watches it.
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

  /// How many sleeps there are, for tests.
  var count: Int { state.withLock { $0.sleeps.count } }

  /// Derives the date of a sleep again whenever the system has been suspended, until ``remove(_:)``.
  func add(_ sleep: any ClockedSleep) {
    let isFirst = state.withLock { state in
      state.sleeps[ObjectIdentifier(sleep)] = Entry(sleep: sleep)
      defer { state.hasWatch = true }
      return !state.hasWatch
    }
    if isFirst { watch() }
  }

  /// Called when a sleep has ended, at the latest in its deinitializer.
  func remove(_ sleep: any ClockedSleep) {
    _ = state.withLock { $0.sleeps.removeValue(forKey: ObjectIdentifier(sleep)) }
  }

  /// Derives the date of every sleep again, because the system has been suspended or its wall clock was set.
  ///
  /// - Complexity: O(n log n) in the sleeps.
  func clocksMayHaveJumped() {
    let sleeps = state.withLock { $0.sleeps.values.compactMap(\.sleep) }
    for sleep in sleeps { sleep.deriveDate() }
    OrphanedSleeps.shared.deriveDates()
  }

  /// Watches for the end of a suspension.
  ///
  /// If the system has no descriptor left, or cannot report it, the sleeps until the next one that is added are late by
  /// the time of a suspension.
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
