// SPDX-License-Identifier: Apache-2.0

import Dispatch
import RunLoopCore
import Synchronization

/// The sleeps that outlived the thread whose loop was supposed to end them.
///
/// They share one heap, and one thread that waits for the earliest. The first sleep starts that thread, which lives as
/// long as the process.
final class OrphanedSleeps: Sendable {
  static var shared: OrphanedSleeps { stored.value }
  private static let stored = PerProcess { OrphanedSleeps() }

  static func prepareForForks() { _ = stored }
  static func forgetParents() { stored.forget() }

  private struct State {
    var heap = SleepHeap()
    var hasWaiter = false
  }

  private let state = ThreadLocked(State())
  /// Incremented when the earliest deadline changes.
  private let changes = Atomic<UInt32>(0)

  /// Calls `wake` at the deadline, on the waiting thread.
  ///
  /// If the system cannot create that thread, Dispatch calls `wake`. Can be called from any thread.
  ///
  /// - Parameters:
  ///   - deadline: The time of the call.
  ///   - derive: Recomputes the deadline if it is an instant of another clock.
  ///   - wake: The closure to call.
  /// - Complexity: O(log n) in the number of waiting sleeps.
  func add(
    until deadline: Tick, deriving derive: (@Sendable () -> Tick)? = nil, _ wake: @escaping @Sendable () -> Void
  ) {
    let (isFirst, needsWaiter) = state.withLock { state -> (Bool, Bool) in
      defer { state.hasWaiter = true }
      return (state.heap.insert(wake, at: deadline, deriving: derive), !state.hasWaiter)
    }
    if needsWaiter {
      startWaiter()
    } else if isFirst {
      changes.wrappingAdd(1, ordering: .releasing)
      changes.futexWake()
    }
  }

  /// Recomputes the deadline of every sleep that ends at an instant of another clock.
  ///
  /// - Complexity: O(n log n) in the number of waiting sleeps.
  func deriveDates() {
    let sleeps = state.withLock { $0.heap.removeAll() }
    guard !sleeps.isEmpty else { return }
    // The clocks are read without the lock, so sleeps that become due meanwhile end slightly late.
    let dated = sleeps.sorted { $0.isBefore($1) }.map { ($0, $0.derive?() ?? $0.deadline) }
    state.withLock { state in
      for (sleep, deadline) in dated { _ = state.heap.insert(sleep.wake, at: deadline, deriving: sleep.derive) }
    }
    changes.wrappingAdd(1, ordering: .releasing)
    changes.futexWake()
  }

  private func startWaiter() {
    let waiter = Thread { [self] in wait() }
    waiter.name = "sleeps"
    waiter.start()
    guard waiter.startError != nil else { return }
    let left = state.withLock { state in
      state.hasWaiter = false
      return state.heap.removeAll()
    }
    for sleep in left { leaveToDispatch(sleep) }
  }

  private func leaveToDispatch(_ sleep: SleepHeap.Sleep) {
    let (left, overflow) = sleep.deadline.nanoseconds.subtractingReportingOverflow(Tick.monotonicNow.nanoseconds)
    guard !overflow, sleep.deadline != .never else { return DispatchQueue.global().async(execute: sleep.wake) }
    DispatchQueue.global().asyncAfter(
      deadline: .now() + .nanoseconds(Int(clamping: max(0, left))), execute: sleep.wake)
  }

  private func wait() -> Never {
    while true {
      let seen = changes.load(ordering: .acquiring)
      let (due, next) = state.withLock { state in
        (state.heap.takeDue(at: .monotonicNow), state.heap.first)
      }
      for wake in due { wake() }
      if due.isEmpty { changes.futexWait(while: seen, until: next) }
    }
  }
}

/// A binary heap ordered by deadline, and by insertion among equal deadlines.
struct SleepHeap {
  struct Sleep {
    let deadline: Tick
    fileprivate let insertion: UInt64
    let wake: @Sendable () -> Void
    fileprivate let derive: (@Sendable () -> Tick)?

    fileprivate func isBefore(_ other: Sleep) -> Bool {
      deadline != other.deadline ? deadline < other.deadline : insertion < other.insertion
    }
  }

  private var sleeps: [Sleep] = []
  private var insertions: UInt64 = 0

  /// The earliest deadline, or ``Tick/never``.
  var first: Tick { sleeps.first?.deadline ?? .never }

  /// Inserts a sleep and returns whether it is now the earliest.
  ///
  /// - Complexity: O(log n).
  mutating func insert(
    _ wake: @escaping @Sendable () -> Void, at deadline: Tick, deriving derive: (@Sendable () -> Tick)? = nil
  ) -> Bool {
    insertions += 1
    sleeps.append(Sleep(deadline: deadline, insertion: insertions, wake: wake, derive: derive))
    var position = sleeps.count - 1
    while position > 0, sleeps[position].isBefore(sleeps[(position - 1) / 2]) {
      sleeps.swapAt(position, (position - 1) / 2)
      position = (position - 1) / 2
    }
    return position == 0
  }

  /// Removes the sleeps that are due and returns them in order.
  ///
  /// - Complexity: O(log n) per sleep.
  mutating func takeDue(at now: Tick) -> [@Sendable () -> Void] {
    var due: [@Sendable () -> Void] = []
    while let first = sleeps.first, first.deadline <= now {
      due.append(first.wake)
      removeFirst()
    }
    return due
  }

  /// Removes all sleeps and returns them in no particular order.
  mutating func removeAll() -> [Sleep] {
    defer { sleeps = [] }
    return sleeps
  }

  private mutating func removeFirst() {
    sleeps.swapAt(0, sleeps.count - 1)
    sleeps.removeLast()
    var position = 0
    while true {
      var least = position
      for child in [2 * position + 1, 2 * position + 2]
      where child < sleeps.count && sleeps[child].isBefore(sleeps[least]) {
        least = child
      }
      guard least != position else { return }
      sleeps.swapAt(position, least)
      position = least
    }
  }
}
