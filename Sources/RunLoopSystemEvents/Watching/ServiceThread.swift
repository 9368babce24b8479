// SPDX-License-Identifier: Apache-2.0

package import RunLoopCore
import Synchronization

/// A loop on a thread of this package, for work that is in no loop of the program: requests of a message port as a
/// sequence, replies that tasks wait for, the death of an observed peer, and lookups of hosts.
package final class ServiceThread: @unchecked Sendable {
  // Sendable: the lock guards all mutable state.

  private static let ours = PerProcess { ServiceThread() }

  /// The loop, whose thread is started on first use in the process.
  package static var loop: RunLoop { ours.value.ready() }

  private let lock = Lock()
  private var loop: RunLoop?
  private let hasStarted = Atomic<Bool>(false)
  private let word = Atomic<UInt32>(0)

  private func ready() -> RunLoop {
    if let loop = lock.withLock({ loop }) { return loop }
    if !hasStarted.exchange(true, ordering: .acquiringAndReleasing) { start() }
    while true {
      word.futexWait(while: 0)
      if let loop = lock.withLock({ loop }) { return loop }
    }
  }

  private func start() {
    let thread = startThread { () -> Bool in
      let loop = RunLoop.current
      loop.add(RunLoop.Source {}, forMode: .default)
      self.publish(loop)
      while true { loop.run() }
    }
    // The thread runs as long as the process.
    _ = Unmanaged.passRetained(thread)
  }

  private func publish(_ loop: RunLoop) {
    lock.withLock { self.loop = loop }
    word.store(1, ordering: .releasing)
    word.futexWake(.max)
  }
}
