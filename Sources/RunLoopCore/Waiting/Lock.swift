// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

/// A mutual exclusion lock of four bytes, which spins for a moment and then sleeps on a futex.
///
/// It is our own because `Synchronization.Mutex` goes to the kernel under contention and causes false reports under the
/// thread sanitizer, because its slow path is not instrumented. It is not recursive, and no call-out runs under it.
package struct Lock: ~Copyable {
  private enum State {
    static let free: UInt32 = 0
    static let held: UInt32 = 1
    /// The lock is held, and a thread may sleep for it.
    static let awaited: UInt32 = 2
  }

  private let word = Atomic<UInt32>(State.free)

  package init() {}

  @inline(__always)
  package borrowing func lock() {
    let (acquired, _) = word.compareExchange(
      expected: State.free, desired: State.held, successOrdering: .acquiring, failureOrdering: .relaxed)
    if !acquired { lockSlowly() }
  }

  @inline(__always)
  package borrowing func unlock() {
    if word.exchange(State.free, ordering: .releasing) == State.awaited { wake() }
  }

  @inline(__always)
  package borrowing func withLock<Result: ~Copyable, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    lock()
    defer { unlock() }
    return try body()
  }

  @inline(never)
  private borrowing func lockSlowly() {
    for _ in 0..<40 {
      crl_spin_hint()
      if word.load(ordering: .relaxed) == State.free,
        word.compareExchange(
          expected: State.free, desired: State.held, successOrdering: .acquiring, failureOrdering: .relaxed
        ).exchanged
      {
        return
      }
    }
    while word.exchange(State.awaited, ordering: .acquiring) != State.free {
      word.futexWait(while: State.awaited)
    }
  }

  // A function of its own, because it would otherwise be inlined into every function that unlocks.
  @inline(never)
  private borrowing func wake() { word.futexWake() }
}
