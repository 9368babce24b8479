// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// A one-time event that threads can wait for.
package final class Latch: Sendable {
  private let word = Atomic<UInt32>(0)

  package init() {}

  package var isOpen: Bool { word.load(ordering: .acquiring) == 1 }

  package func open() {
    word.store(1, ordering: .releasing)
    word.futexWake(.max)
  }

  /// Waits for the event without a time limit.
  package func wait(file: String = #fileID, line: Int = #line) {
    var patience = Patience(file, line)
    while !isOpen {
      word.futexWait(while: 0, until: patience.end)
      patience.check()
    }
  }
}

/// Keeps a thread busy in one block until the test releases it.
package final class Hold: Sendable {
  package let begun = Latch()
  package let released = Latch()

  package init() {}

  /// The block to run on the thread.
  package func occupy(file: String = #fileID, line: Int = #line) {
    begun.open()
    released.wait(file: file, line: line)
  }
}
