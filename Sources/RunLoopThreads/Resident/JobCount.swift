// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// How many jobs of actors and tasks a resident thread has run.
///
/// Only one thread at a time adds: the resident thread, and the queue of the late jobs after it has ended. So adding
/// needs no atomic operation of the processor, which would cost a tenth of an actor's call.
///
/// Relaxed: the number is all that is read of it, and the queue begins after the thread has ended.
final class JobCount: Sendable {
  private let count = Atomic<Int>(0)

  func add() { count.store(count.load(ordering: .relaxed) &+ 1, ordering: .relaxed) }

  /// Can be read from any thread.
  var value: Int { count.load(ordering: .relaxed) }
}
