// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
public import RunLoopThreads

extension ResidentThread {
  /// Starts a thread whose loop is on a virtual time, and returns when the loop takes work.
  ///
  /// Actors on it, tasks that prefer it and their sleeps, timers and delayed work use that time. The time moves only
  /// while the thread sleeps, and the thread sleeps as long as the time's owner does not move it. Threads on one time
  /// that are due at the same date run one after the other, in the order in which they were made.
  ///
  /// - Parameters:
  ///   - name: The thread's name, which precedes its entries in the log.
  ///   - time: The time that its loop is on.
  ///   - onStart: Called on the thread before it takes work.
  ///   - onStop: Called on the thread when it takes no more work.
  /// - Throws: `ThreadError.cannotStart`.
  public convenience init(
    name: String, on time: VirtualTime, onStart: (@Sendable () -> Void)? = nil, onStop: (@Sendable () -> Void)? = nil
  ) throws(ThreadError) {
    let (loop, keeper) = time.makeLoop(sleeper: time.timeline.join(name: "thread \"\(name)\""), prefix: name + ":")
    do throws(ThreadError) {
      try self.init(loop: loop, name: name, onStart: onStart, onStop: onStop)
    } catch {
      keeper.loopHasEnded()
      throw error
    }
    time.add(keeper) { [weak self] in self?.stop(.immediately) }
  }
}

extension VirtualTime {
  /// Starts the thread of a body, which may stand in for the main one.
  func makeThread(
    name: String, prefix: String, asMain: Bool, onStart: (@Sendable () -> Void)?, onStop: (@Sendable () -> Void)?
  ) throws(ThreadError) -> ResidentThread {
    let (loop, keeper) = makeLoop(sleeper: timeline.join(name: "thread \"\(name)\"", isTests: true), prefix: prefix)
    let thread: ResidentThread
    do throws(ThreadError) {
      thread = try ResidentThread(
        loop: loop, name: name,
        onStart: {
          if asMain { RunLoop.current.standInForMain() }
          onStart?()
        }, onStop: onStop)
    } catch {
      keeper.loopHasEnded()
      throw error
    }
    add(keeper) { [weak thread] in thread?.stop(.immediately) }
    return thread
  }
}
