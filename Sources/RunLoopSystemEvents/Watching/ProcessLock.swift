// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The lock of an object that belongs to the process that created it.
///
/// In a forked child, the lock may be held by a thread that does not exist there, and the object's descriptors refer
/// to the parent's kernel state. Code must therefore check ``isParents`` first and treat the parent's objects as
/// invalid. If it does not, the child is terminated with a message instead of hanging or interfering with its parent.
package struct ProcessLock: ~Copyable {
  private let inner = Lock()
  private let generation = ForkGeneration.current

  package init() {}

  /// Whether the lock, and what it guards, belong to this process's parent.
  @inline(__always)
  package var isParents: Bool { generation.isPast }

  @inline(__always)
  package borrowing func lock() {
    generation.checkItem()
    inner.lock()
  }

  /// Locks and returns true, or returns false without locking if the lock belongs to the parent.
  @inline(__always)
  package borrowing func lockUnlessParents() -> Bool {
    if isParents { return false }
    inner.lock()
    return true
  }

  @inline(__always)
  package borrowing func unlock() { inner.unlock() }

  @inline(__always)
  package borrowing func withLock<Result: ~Copyable, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    lock()
    defer { unlock() }
    return try body()
  }

  /// Returns the result of `body`, called with the lock held, or `fallback` if the lock belongs to the parent.
  @inline(__always)
  package borrowing func ifOwned<Result, Failure: Error>(
    else fallback: @autoclosure () -> Result, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    isParents ? fallback() : try withLock(body)
  }

  /// Calls `body` with the lock held, unless the lock belongs to the parent.
  @inline(__always)
  package borrowing func ifOwned<Failure: Error>(_ body: () throws(Failure) -> Void) throws(Failure) {
    if !isParents { try withLock(body) }
  }

  /// Calls `body` with the lock held, unless the lock belongs to the parent, and releases its result without the lock.
  @inline(__always)
  package borrowing func releasing<Result>(_ body: () -> Result) {
    guard lockUnlessParents() else { return }
    let result = body()
    unlock()
    withExtendedLifetime(result) {}
  }

  /// Orders what a thread did before it held this lock and resumed a task before what the task does next.
  @inline(__always)
  package borrowing func noteResumption() { inner.noteResumption() }
}
