// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// Something that a thread is to do and for which others wait.
protocol Awaited: AnyObject {
  /// Whether it has been done, or never will be.
  ///
  /// Any thread, under a lock.
  var isOver: Bool { get }

  /// Waits until it is over, or the deadline; it may return early.
  ///
  /// - Parameter looker: The calling thread's own.
  func wait(until deadline: Tick, by looker: inout Looker)
}

/// Whom a thread waits for, and whether the wait is still for something to come.
///
/// Each thread that waits publishes it before it sleeps, and then walks from thread to thread. Of several waits that
/// close a cycle together, the last that is published sees all others: at least one walk finds the cycle. There is no
/// lock but one for each record.
///
/// A walk reads one record after the other, and what it has seen first may be over when it sees the last. So who finds
/// a cycle walks it again: when every wait is still the same and not over, all of them were there at once, between the
/// two walks.
final class WaitRecord: @unchecked Sendable {
  // Sendable: guarded by the lock, but for the looker, which is the waiting thread's own.
  private let lock = Lock()
  // Not held here: the waiting thread holds both until it has withdrawn them.
  @exclusivity(unchecked) private unowned(unsafe) var target: Thread?
  @exclusivity(unchecked) private unowned(unsafe) var awaited: (any Awaited)?
  @exclusivity(unchecked) private var generation: UInt64 = 0
  /// Whether the thread looks before it sleeps for another's work.
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

  /// One wait of a thread.
  struct Wait {
    let target: Thread
    fileprivate let generation: UInt64
  }

  /// Whom the thread waits for now.
  ///
  /// A wait whose end has arrived and that has only not woken yet is none.
  var current: Wait? {
    lock.lock()
    defer { lock.unlock() }
    guard let target, let awaited, !awaited.isOver else { return nil }
    return Wait(target: target, generation: generation)
  }

  /// Whether a wait goes on.
  func isStill(_ wait: Wait) -> Bool { current?.generation == wait.generation }
}

// On the calling thread.
extension Thread {
  /// Publishes that the thread waits for something that another is to do, until ``endWait()``.
  ///
  /// Whatever is then asked of the other thread finds the wait published. A wait that would close a cycle is not
  /// published, and throws.
  func beginWait(for awaited: any Awaited, of target: Thread) throws(ThreadError) {
    if target.wasStartedHere { target.generation.checkThread() }
    waiting.publish(target, awaited)
    // Mostly the other waits for nobody, and closes nothing.
    if target === self || target.waiting.current != nil, let cycle = closedCycle() {
      waiting.withdraw()
      throw .wouldDeadlock(cycle: cycle.map(\.label))
    }
  }

  func endWait() { waiting.withdraw() }

  /// Sleeps until what the thread has begun to wait for is over, or throws at the deadline.
  func sleep(for awaited: some Awaited, of target: Thread, until deadline: Tick) throws(ThreadError) {
    // At every level: nobody knows beforehand which wait will not end.
    ThreadFace.noteWait(forThread: target.kernelID)
    defer { ThreadFace.noteWait(forThread: 0) }
    while !awaited.isOver {
      guard deadline == .never || Tick.monotonicNow < deadline else { throw .timedOut }
      awaited.wait(until: deadline, by: &waiting.looker)
    }
  }

  /// The threads of the cycle that this one's wait has closed, this one first and last.
  private func closedCycle() -> [Thread]? {
    var cycle: [Thread] = []
    var waits: [WaitRecord.Wait] = []
    var next = self
    // A walk that runs into a cycle of others is theirs to break.
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
