// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore

// The end of a thread, for those who wait for it and for itself.
extension ThreadMembers {
  /// Waits until the thread has finished.
  ///
  /// Its work is done then, its loop has ended, what it held is released, and its object can go; so has what Core
  /// Foundation kept for it, as the wait ends in the third round of the thread's destructors.
  ///
  /// - Throws: ``ThreadError/joinsItself(thread:)``, ``ThreadError/notStarted(thread:)``, or
  ///   ``ThreadError/wouldDeadlock(cycle:)`` if the thread waits for the calling one.
  public func join() throws(ThreadError) {
    try join(until: .never)
  }

  /// Waits until the thread has finished, but not longer than a time.
  ///
  /// - Throws: As ``join()``, and ``ThreadError/timedOut``.
  public func join(timeout: Duration) throws(ThreadError) {
    try join(until: .after(timeout))
  }

  fileprivate func join(until deadline: Tick) throws(ThreadError) {
    let me = Thread.current
    guard me !== self else { throw .joinsItself(thread: label) }
    guard !hasNotStarted else { throw .notStarted(thread: label) }
    try me.wait(for: self, until: deadline) { [self] in
      ending.hasCome
    } sleep: {
      ending.sleep(until: $0)
    }
  }

}

extension Thread {
  /// Ends the calling thread, which must not be the main one.
  ///
  /// Nothing of the code that called is run any more, and what its frames hold is not released; what the thread itself
  /// owns is: its object, its block, its loop. Work that was given to it, also what is running now, is dropped, and
  /// whoever waits for it gets an error. All this is done before any destructor of thread-specific data runs; on a
  /// thread that was made by other means, in the second round of them. The corresponding Foundation method is `exit()`.
  ///
  /// - Precondition: The calling thread is not the main one, and does not run a job of an actor or a task, which would
  ///   never come to its end.
  public class func exit() -> Never {
    guard !RunLoop.isMainThread else { fatalError("the main thread cannot exit; the process does") }
    if let slot = crl_object_slot_get(), slot != endedMark,
      object(in: slot)._withUnsafeGuaranteedRef({ $0.wasStartedHere })
    {
      endCurrent()
    }
    pthread_exit(nil)
  }
}

extension Thread: CustomDebugStringConvertible {
  /// The thread's name and state.
  public var debugDescription: String { "<\(type(of: self))>{\(summary)}" }
}
