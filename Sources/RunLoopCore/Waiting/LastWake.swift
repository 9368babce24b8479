// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

/// The time and processor of the thread that ended a sleep, which determine whether the next wait polls.
package struct Waker: Sendable {
  /// The time at which it ended the sleep.
  package var time: Tick
  /// The number of the processor that it ran on, or −1 if that is unknown.
  package var processor: Int32

  package init(time: Tick, processor: Int32) {
    self.time = time
    self.processor = processor
  }
}

/// The last thread that made a system call to wake a sleeper.
///
/// Relaxed: a sleeper that reads an outdated value polls for too long or not at all in one wait.
struct LastWake: ~Copyable, Sendable {
  private let time = Atomic<Int64>(Tick.distantPast.nanoseconds)
  private let processor = Atomic<Int32>(-1)

  /// Records the calling thread, which is about to wake the sleeper.
  borrowing func record() {
    time.store(SystemWaiter.now.nanoseconds, ordering: .relaxed)
    processor.store(crl_processor(), ordering: .relaxed)
  }

  /// Forgets the processor of the last waker, so that a sleep that times out is not attributed to it.
  borrowing func forgetProcessor() { processor.store(-1, ordering: .relaxed) }

  var waker: Waker {
    Waker(time: Tick(nanoseconds: time.load(ordering: .relaxed)), processor: processor.load(ordering: .relaxed))
  }
}
