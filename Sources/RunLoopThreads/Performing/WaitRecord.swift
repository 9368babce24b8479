import RunLoopCore
import Synchronization

/// Whom a thread waits for, and whether the wait is still for something to come.
///
/// Each thread that waits publishes it before it sleeps, and then walks from thread to thread. Of several waits that close a
/// circle together, each walk that comes last on some record sees the others: at least one finds the circle. There is no lock
/// but one for each record.
final class WaitRecord: @unchecked Sendable {
  // Sendable: guarded by the lock.
  private let lock = Lock()
  private var target: Thread?
  private var isOver: (() -> Bool)?

  func publish(_ target: Thread, isOver: @escaping () -> Bool) {
    lock.lock()
    self.target = target
    self.isOver = isOver
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

  /// Whom the thread waits for now.
  ///
  /// A wait whose end has come and that has only not woken yet is none.
  var current: Thread? {
    lock.lock()
    defer { lock.unlock() }
    guard let target, let isOver, !isOver() else { return nil }
    return target
  }
}

extension Thread {
  /// Waits for something that another thread is to do.
  ///
  /// - Parameters:
  ///   - target: Who is to do it.
  ///   - deadline: When to give up.
  ///   - isOver: Whether it has been done. Any thread.
  ///   - sleep: Sleeps until it may have been done, or until the deadline.
  func wait(
    for target: Thread, until deadline: Tick, isOver: @escaping () -> Bool, sleep: (Tick) -> Void
  ) throws(ThreadError) {
    guard !isOver() else { return }
    waiting.publish(target, isOver: isOver)
    defer { waiting.withdraw() }
    var cycle = [label]
    var next: Thread? = target
    while let thread = next {
      cycle.append(thread.label)
      if thread === self { throw .wouldDeadlock(cycle: cycle) }
      // A walk that runs into a circle of others is theirs to break.
      if cycle.count > 1000 { break }
      next = thread.waiting.current
    }
    while !isOver() {
      guard Tick.monotonicNow < deadline else { throw .timedOut }
      sleep(deadline)
    }
  }
}
