// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// Whom a thread waits for, and whether the wait is still for something to come.
///
/// Each thread that waits publishes it before it sleeps, and then walks from thread to thread. Of several waits that close a
/// circle together, the last that is published sees all others: at least one walk finds the circle. There is no lock but
/// one for each record.
///
/// A walk reads one record after the other, and what it has seen first may be over when it sees the last. So who finds a circle
/// walks it again: when every wait is still the same and not over, all of them were there at once, between the two walks.
final class WaitRecord: @unchecked Sendable {
  // Sendable: guarded by the lock, but for the looker, which is the waiting thread's own.
  private let lock = Lock()
  @exclusivity(unchecked) private var target: Thread?
  @exclusivity(unchecked) private var isOver: (() -> Bool)?
  @exclusivity(unchecked) private var generation: UInt64 = 0
  /// Whether the thread looks before it sleeps for another's work.
  @exclusivity(unchecked) var looker = Looker()

  func publish(_ target: Thread, isOver: @escaping () -> Bool) {
    lock.lock()
    self.target = target
    self.isOver = isOver
    generation += 1
    lock.unlock()
  }

  func withdraw() {
    lock.lock()
    let released = (target, isOver)
    target = nil
    isOver = nil
    lock.unlock()
    withExtendedLifetime(released) {}
  }

  /// One wait of a thread.
  struct Wait {
    let target: Thread
    fileprivate let generation: UInt64
  }

  /// Whom the thread waits for now.
  ///
  /// A wait whose end has come and that has only not woken yet is none.
  var current: Wait? {
    lock.lock()
    defer { lock.unlock() }
    guard let target, let isOver, !isOver() else { return nil }
    return Wait(target: target, generation: generation)
  }

  /// Whether a wait goes on.
  func isStill(_ wait: Wait) -> Bool { current?.generation == wait.generation }
}

extension Thread {
  /// Waits for something that another thread is to do.
  ///
  /// - Parameters:
  ///   - target: Who is to do it.
  ///   - deadline: When to give up.
  ///   - isOver: Whether it has been done. Any thread.
  ///   - begin: Asks the other thread for it. What that does of it finds the wait published.
  ///   - sleep: Sleeps until it may have been done, or until the deadline.
  func wait(
    for target: Thread, until deadline: Tick, isOver: @escaping () -> Bool,
    begin: () throws(ThreadError) -> Void = {}, sleep: (Tick) -> Void
  ) throws(ThreadError) {
    guard !isOver() else { return }
    waiting.publish(target, isOver: isOver)
    defer { waiting.withdraw() }
    // Mostly the other waits for nobody, and closes nothing.
    if target === self || target.waiting.current != nil, let cycle = closedCycle() {
      throw .wouldDeadlock(cycle: cycle.map(\.label))
    }
    try begin()
    let isWatched = ThreadFace.isWatched
    if isWatched { ThreadFace.noteWait(forThread: target.kernelID) }
    defer { if isWatched { ThreadFace.noteWait(forThread: 0) } }
    while !isOver() {
      guard Tick.monotonicNow < deadline else { throw .timedOut }
      sleep(deadline)
    }
  }

  /// The threads of the circle that this one's wait has closed, this one first and last.
  private func closedCycle() -> [Thread]? {
    var cycle: [Thread] = []
    var waits: [WaitRecord.Wait] = []
    var next = self
    // A walk that runs into a circle of others is theirs to break.
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
