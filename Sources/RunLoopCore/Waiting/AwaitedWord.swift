// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A word whose final value other threads wait for, polling it briefly before they sleep, as a loop does.
///
/// **Why no wake-up is lost.** A waiting thread first increments the count of sleepers and then reads the word again;
/// the finishing thread first stores the final value and then reads the count. All four accesses are sequentially
/// consistent, so at least one of the two threads sees the other's change.
package struct AwaitedWord: ~Copyable {
  private let word: Atomic<UInt32>
  /// The number of threads that sleep or are about to.
  ///
  /// The decrement is relaxed: a thread that reads an outdated count makes an unnecessary system call.
  private let sleepers = Atomic<Int32>(0)
  /// The thread that last woke the sleepers.
  private let lastWake = LastWake()

  package init(_ value: UInt32) { word = Atomic(value) }

  package var value: UInt32 { word.load(ordering: .acquiring) }

  /// Replaces an expected value without waking a thread; returns false if the word has another value.
  package borrowing func exchange(_ expected: UInt32, for desired: UInt32) -> Bool {
    word.compareExchange(expected: expected, desired: desired, ordering: .acquiringAndReleasing).exchanged
  }

  /// Stores the final value and wakes all waiting threads; makes no system call if no thread sleeps.
  package borrowing func finish(_ value: UInt32) {
    word.store(value, ordering: .sequentiallyConsistent)
    guard sleepers.load(ordering: .sequentiallyConsistent) > 0 else { return }
    lastWake.record()
    word.futexWake(.max)
  }

  /// Waits until `isOver` returns true, or until a deadline of the monotonic clock; it may return early.
  ///
  /// - Parameter looker: The calling thread's looker.
  package borrowing func wait(until deadline: Tick, by looker: inout Looker, isOver: (UInt32) -> Bool) {
    let waiting = RunLoop.waiting
    let looks = looker.isDue(waiting)
    guard looks || looker.measures(waiting) else {
      sleep(until: deadline, isOver: isOver)
      return looker.noteWaker(lastWake.waker.processor)
    }
    let began = SystemWaiter.now
    if looks {
      let outcome = looker.look(from: began, until: deadline, limit: waiting.limit, isOver: { isOver(value) })
      if outcome == .found { return }
    }
    sleep(until: deadline, isOver: isOver)
    looker.noteSleep(from: began, endedBy: lastWake.waker, isEvent: false, limit: waiting.limit)
  }

  private borrowing func sleep(until deadline: Tick, isOver: (UInt32) -> Bool) {
    sleepers.wrappingAdd(1, ordering: .sequentiallyConsistent)
    let value = word.load(ordering: .sequentiallyConsistent)
    if !isOver(value) { word.futexWait(while: value, until: deadline) }
    sleepers.wrappingSubtract(1, ordering: .relaxed)
  }
}
