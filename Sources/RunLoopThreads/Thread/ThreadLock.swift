// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import Synchronization

typealias ThreadLock = Lock

/// A value guarded by a lock.
final class ThreadLocked<Value>: @unchecked Sendable {
  // Sendable: the value is guarded by the lock.
  private let lock = Lock()
  private var value: Value

  init(_ value: Value) {
    self.value = value
  }

  func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}

/// Returns the system's description of an error number.
func errorText(_ number: Int32) -> String {
  "\(strerror(number).map { String(cString: $0) } ?? "error") (\(number))"
}
