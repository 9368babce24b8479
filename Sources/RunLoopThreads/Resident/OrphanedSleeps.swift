// SPDX-License-Identifier: Apache-2.0

import Dispatch
import RunLoopCore
import Synchronization

/// The sleeps that have outlived the thread whose loop was to end them: one heap, and one thread that waits for the
/// first sleep.
///
/// The thread is made for the first sleep, and stays for as long as the process.
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
  /// Changes with each sleep that is to end before all other sleeps.
  private let changes = Atomic<UInt32>(0)

  /// Calls `wake` at a time, on the waiting thread.
  ///
  /// If the system can make no thread, Dispatch makes the call. Can be called from any thread.
  ///
  /// - Parameters:
  ///   - deadline: The time.
  ///   - derive: Returns the time anew, if it is an instant of another clock.
  ///   - wake: Called at that time.
  /// - Complexity: O(log n) in the sleeps that wait.
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

  /// Derives the time of every sleep again that is an instant of another clock.
  ///
  /// - Complexity: O(n log n) in the sleeps that wait.
  func deriveDates() {
    let sleeps = state.withLock { $0.heap.removeAll() }
    guard !sleeps.isEmpty else { return }
    // The clocks are read under no lock; what is due meanwhile is a little late.
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

/// A binary heap by deadline and, for equal deadlines, by insertion.
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

  /// When the first sleep ends, or ``Tick/never``.
  var first: Tick { sleeps.first?.deadline ?? .never }

  /// Inserts a sleep, and returns whether it is now the first to end.
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

  /// Takes the sleeps that are over, in order.
  ///
  /// - Complexity: O(log n) for each.
  mutating func takeDue(at now: Tick) -> [@Sendable () -> Void] {
    var due: [@Sendable () -> Void] = []
    while let first = sleeps.first, first.deadline <= now {
      due.append(first.wake)
      removeFirst()
    }
    return due
  }

  /// Takes all sleeps, in no order.
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
