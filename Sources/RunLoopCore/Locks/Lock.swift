// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
public import Synchronization

/// A four-byte mutual exclusion lock that spins briefly and then sleeps on a futex.
///
/// `Synchronization.Mutex` is not used because it enters the kernel under contention, and its uninstrumented slow path
/// causes false reports from the thread sanitizer. This lock is not recursive, and no call-out runs while it is held.
///
/// It is inlinable because higher layers lock several times per message, where a call would double the cost of a lock.
@usableFromInline
package struct Lock: ~Copyable {
  @usableFromInline
  enum State {
    @inlinable static var free: UInt32 { 0 }
    @inlinable static var held: UInt32 { 1 }
    /// The lock is held, and a thread may be sleeping until it is free.
    @inlinable static var awaited: UInt32 { 2 }
  }

  // Relaxed ordering suffices where the lock was not acquired, because no guarded data is read then.
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

  // A separate function so that it is not inlined into every function that unlocks.
  @usableFromInline
  @inline(never)
  borrowing func wake() { word.futexWake() }
}
