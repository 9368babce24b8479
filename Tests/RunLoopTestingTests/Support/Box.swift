// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Synchronization

/// A variable shared by call-outs.
final class Box<Value: Sendable>: @unchecked Sendable {
  // Sendable: guarded by the lock.
  private let lock = Lock()
  private var stored: Value

  init(_ value: Value) { stored = value }

  var value: Value {
    get { lock.withLock { stored } }
    set { lock.withLock { stored = newValue } }
  }
}

extension Timer {
  /// The date in seconds since 2001.
  var wallDateForTests: Double { wallDate }
}

extension Thread {
  /// A gate on which a thread waits until it is opened.
  final class Gate: Sendable {
    private let word = Atomic<UInt32>(0)

    func open() {
      word.store(1, ordering: .releasing)
      word.futexWake(.max)
    }

    func wait() { while word.load(ordering: .acquiring) == 0 { word.futexWait(while: 0) } }
  }
}
