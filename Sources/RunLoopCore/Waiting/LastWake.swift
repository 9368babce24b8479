// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

/// The thread that ended a sleep, as far as the next look needs to know it.
package struct Waker: Sendable {
  /// When it ended the sleep.
  package var time: Tick
  /// The number of the processor it ran on, or −1 if that is unknown.
  package var processor: Int32

  package init(time: Tick, processor: Int32) {
    self.time = time
    self.processor = processor
  }

  /// Nothing is known about the end of the sleep.
  package static let unknown = Waker(time: .distantPast, processor: -1)

  /// The calling thread, now.
  package static var current: Waker { Waker(time: SystemWaiter.now, processor: crl_processor()) }
}

/// The last thread that made a call to wake a sleeper.
///
/// Relaxed: a sleeper that reads an earlier value looks for too long or not at all, once.
struct LastWake: ~Copyable, Sendable {
  private let time = Atomic<Int64>(Tick.distantPast.nanoseconds)
  private let processor = Atomic<Int32>(-1)

  /// Records the calling thread, which is about to wake the sleeper.
  borrowing func record() {
    let waker = Waker.current
    time.store(waker.time.nanoseconds, ordering: .relaxed)
    processor.store(waker.processor, ordering: .relaxed)
  }

  /// Forgets the processor of the last waker, so that a sleep that no thread ends has none.
  borrowing func forgetProcessor() { processor.store(-1, ordering: .relaxed) }

  var waker: Waker {
    Waker(time: Tick(nanoseconds: time.load(ordering: .relaxed)), processor: processor.load(ordering: .relaxed))
  }
}
