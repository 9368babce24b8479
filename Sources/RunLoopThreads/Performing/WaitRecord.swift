// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// An operation of one thread that other threads wait for.
protocol Awaited: AnyObject {
  /// Whether the operation has completed or never will; can be called from any thread, with locks held.
  var isOver: Bool { get }

  /// Waits until the operation is over or the deadline has passed; may return early.
  ///
  /// - Parameter looker: The calling thread's looker.
  func wait(until deadline: Tick, by looker: inout Looker)
}

/// A record of the thread that another thread waits for, used to detect deadlocks.
///
/// Each waiting thread publishes its record before it sleeps, and then follows the records from thread to thread. If
/// several waits close a cycle, the last thread to publish sees all the others, so at least one walk finds the cycle.
/// Each record has its own lock, and there is no global one.
///
/// A walk reads the records one after another, so the first may be out of date by the time it reads the last. A thread
/// that finds a cycle therefore walks it a second time: if every wait is unchanged and not over, all of them were
/// active at the same moment between the two walks.
final class WaitRecord: @unchecked Sendable {
  // Sendable: guarded by the lock, except for the looker, which only the waiting thread uses.
  private let lock = Lock()
  // Unowned, because the waiting thread holds both until it withdraws them.
  @exclusivity(unchecked) private unowned(unsafe) var target: Thread?
  @exclusivity(unchecked) private unowned(unsafe) var awaited: (any Awaited)?
  @exclusivity(unchecked) private var generation: UInt64 = 0
  /// Decides whether the thread spins before it sleeps until another thread's work is done.
  @exclusivity(unchecked) var looker = Looker()

  func publish(_ target: Thread, _ awaited: any Awaited) {
    lock.lock()
    self.target = target
    self.awaited = awaited
    generation += 1
    lock.unlock()
  }

  func withdraw() {
    lock.lock()
    target = nil
    awaited = nil
    lock.unlock()
  }

  /// A wait for a thread, identified by its generation.
  struct Wait {
    let target: Thread
    fileprivate let generation: UInt64
  }

  /// The thread's current wait, or nil if it is not waiting.
  ///
  /// A wait whose operation is over does not count, even if the thread has not woken yet.
  var current: Wait? {
    lock.lock()
    defer { lock.unlock() }
    guard let target, let awaited, !awaited.isOver else { return nil }
    return Wait(target: target, generation: generation)
  }

  /// Returns whether a wait is still in progress.
  func isStill(_ wait: Wait) -> Bool { current?.generation == wait.generation }
}

// Called on the waiting thread.
extension Thread {
  /// Publishes that the thread waits for another thread, until ``endWait()``.
  ///
  /// The caller posts its request to the other thread afterwards, so the request always finds the wait published. If
  /// the wait would close a cycle, it is withdrawn and this throws.
  func beginWait(for awaited: any Awaited, of target: Thread) throws(ThreadError) {
    if target.wasStartedHere { target.generation.checkThread() }
    waiting.publish(target, awaited)
    // Most targets are not waiting themselves, so there is no cycle to look for.
    if target === self || target.waiting.current != nil, let cycle = closedCycle() {
      waiting.withdraw()
      throw .wouldDeadlock(cycle: cycle.map(\.label))
    }
  }

  func endWait() { waiting.withdraw() }

  /// Sleeps until the operation published by ``beginWait(for:of:)`` is over, or throws at the deadline.
  func sleep(for awaited: some Awaited, of target: Thread, until deadline: Tick) throws(ThreadError) {
    // Recorded at every recording level, because any wait may turn out to be the one that never ends.
    ThreadFace.noteWait(forThread: target.kernelID)
    defer { ThreadFace.noteWait(forThread: 0) }
    while !awaited.isOver {
      guard deadline == .never || Tick.monotonicNow < deadline else { throw .timedOut }
      awaited.wait(until: deadline, by: &waiting.looker)
    }
  }

  /// The threads of the cycle that this thread's wait has closed; this thread is both first and last.
  private func closedCycle() -> [Thread]? {
    var cycle: [Thread] = []
    var waits: [WaitRecord.Wait] = []
    var next = self
    // A cycle that does not include this thread is left to its own members.
    while waits.count < 1000, let wait = next.waiting.current {
      cycle.append(next)
      waits.append(wait)
      next = wait.target
      guard next === self else { continue }
      for (thread, wait) in zip(cycle, waits) where !thread.waiting.isStill(wait) { return nil }
      return cycle + [self]
    }
    return nil
  }
}
