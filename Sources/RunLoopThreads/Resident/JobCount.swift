// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A counter of the actor and task jobs that a resident thread has run.
///
/// Only one thread at a time writes: first the resident thread, and after its end the queue of late jobs. A plain load
/// and store therefore suffice; an atomic increment would add a tenth to the cost of an actor call.
///
/// The accesses are relaxed, because the count publishes no other data and the queue starts after the thread has
/// ended.
final class JobCount: Sendable {
  private let count = Atomic<Int>(0)

  func add() { count.store(count.load(ordering: .relaxed) &+ 1, ordering: .relaxed) }

  /// Can be read from any thread.
  var value: Int { count.load(ordering: .relaxed) }
}
