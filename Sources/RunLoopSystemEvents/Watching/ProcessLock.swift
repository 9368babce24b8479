// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The lock of something that belongs to the process that made it.
///
/// In a child of a fork, a thread that is not there may hold it forever, and what the kernel knows by the descriptors
/// is the parent's. So a child asks ``isParents`` first, and treats what it has from its parent as invalid. Where that
/// is forgotten it is stopped with a message: it neither hangs nor disturbs its parent.
package struct ProcessLock: ~Copyable {
  private let inner = Lock()
  private let generation = ForkGeneration.current

  package init() {}

  /// Whether what the lock guards is the parent's of this process.
  @inline(__always)
  package var isParents: Bool { generation.isPast }

  @inline(__always)
  package borrowing func lock() {
    generation.checkItem()
    inner.lock()
  }

  /// Locks, unless what the lock guards is the parent's: then it returns false.
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

  /// What is found under the lock, unless that is the parent's: then `fallback`.
  @inline(__always)
  package borrowing func ifOwned<Result, Failure: Error>(
    else fallback: @autoclosure () -> Result, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    isParents ? fallback() : try withLock(body)
  }

  /// Does something under the lock, unless what it guards is the parent's.
  @inline(__always)
  package borrowing func ifOwned<Failure: Error>(_ body: () throws(Failure) -> Void) throws(Failure) {
    if !isParents { try withLock(body) }
  }

  /// Does something under the lock, unless what it guards is the parent's, and releases the result without the lock.
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
