// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
public import Synchronization

/// A mutual exclusion lock of four bytes, which spins for a moment and then sleeps on a futex.
///
/// It is our own because `Synchronization.Mutex` goes to the kernel under contention and causes false reports under the
/// thread sanitizer, because its slow path is not instrumented. It is not recursive, and no call-out runs under it.
///
/// It is inlinable because the layers above lock several times for each message, and a call costs as much as the lock.
@usableFromInline
package struct Lock: ~Copyable {
  @usableFromInline
  enum State {
    @inlinable static var free: UInt32 { 0 }
    @inlinable static var held: UInt32 { 1 }
    /// The lock is held, and a thread may sleep for it.
    @inlinable static var awaited: UInt32 { 2 }
  }

  // Relaxed where the lock was not taken: nothing that it guards is read then.
  @usableFromInline let word = Atomic<UInt32>(State.free)

  @inlinable
  package init() {}

  @inlinable
  @inline(__always)
  package borrowing func lock() {
    let (acquired, _) = word.compareExchange(
      expected: State.free, desired: State.held, successOrdering: .acquiring, failureOrdering: .relaxed)
    if !acquired { lockSlowly() }
  }

  @inlinable
  @inline(__always)
  package borrowing func unlock() {
    if word.exchange(State.free, ordering: .releasing) == State.awaited { wake() }
  }

  @inlinable
  @inline(__always)
  package borrowing func withLock<Result: ~Copyable, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    lock()
    defer { unlock() }
    return try body()
  }

  @usableFromInline
  @inline(never)
  borrowing func lockSlowly() {
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
  @usableFromInline
  @inline(never)
  borrowing func wake() { word.futexWake() }
}
