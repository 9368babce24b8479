// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

// Waiting for the end of a thread.
extension ThreadMembers {
  /// Waits until the thread has finished.
  ///
  /// By then its work is done, its loop has ended and the objects it held have been released.
  ///
  /// Core Foundation's data for the thread has been released too, because the wait ends in the third round of the
  /// thread's destructors. Waiting in a forked child for a thread of the parent is a fatal error.
  ///
  /// - Throws: ``ThreadError/joinsItself(thread:)``, ``ThreadError/notStarted(thread:)``, or
  ///   ``ThreadError/wouldDeadlock(cycle:)`` if the thread waits for the calling one.
  public func join() throws(ThreadError) {
    try join(until: .never)
  }

  /// Waits until the thread has finished or a timeout has elapsed.
  ///
  /// - Throws: The errors of ``join()``, and ``ThreadError/timedOut``.
  public func join(timeout: Duration) throws(ThreadError) {
    try join(until: .after(timeout))
  }

  fileprivate func join(until deadline: Tick) throws(ThreadError) {
    let me = Thread.current
    guard me !== self else { throw .joinsItself(thread: label) }
    guard !hasNotStarted else { throw .notStarted(thread: label) }
    try me.beginWait(for: ending, of: self)
    defer { me.endWait() }
    try me.sleep(for: ending, of: self, until: deadline)
  }
}

extension Thread: CustomDebugStringConvertible {
  /// The thread's name and state.
  public var debugDescription: String { "<\(type(of: self))>{\(summary)}" }
}
