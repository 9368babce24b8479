// SPDX-License-Identifier: Apache-2.0

/// The loops that exist, for instruments and tests.
package final class RunLoopRegistry: @unchecked Sendable {
  package static let shared = RunLoopRegistry()

  // Sendable: guarded by the lock. Each loop is retained by its thread.
  private let lock = Lock()
  private var loops: [ObjectIdentifier: Unmanaged<RunLoop>] = [:]

  func insert(_ loop: RunLoop) {
    lock.withLock { loops[ObjectIdentifier(loop)] = .passUnretained(loop) }
  }

  func remove(_ loop: RunLoop) {
    lock.withLock { _ = loops.removeValue(forKey: ObjectIdentifier(loop)) }
  }

  func prepareForFork() { lock.lock() }

  func finishForkInParent() { lock.unlock() }

  func finishForkInChild() {
    loops = [:]
    lock.unlock()
  }

  /// The loops in order of their threads' ids.
  ///
  /// Can be used from any thread. A loop is removed before its thread releases it.
  package var all: [RunLoop] {
    lock.withLock { loops.values.map { $0.takeUnretainedValue() } }.sorted { $0.threadID < $1.threadID }
  }

  package func contains(_ loop: RunLoop) -> Bool { lock.withLock { loops[ObjectIdentifier(loop)] != nil } }
}
