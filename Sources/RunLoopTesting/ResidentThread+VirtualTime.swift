// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
public import RunLoopThreads

extension ResidentThread {
  /// Starts a thread whose loop runs on a virtual time, and returns when the loop accepts work.
  ///
  /// Actors on the thread, tasks that prefer it and their sleeps, timers and delayed work use that time. The time
  /// moves only while the thread sleeps, and the thread sleeps until the owner moves the time. Threads on one time
  /// that are due at the same date run one after another, in the order of their creation.
  ///
  /// - Parameters:
  ///   - name: The thread's name, which prefixes its entries in the log.
  ///   - time: The virtual time of the thread's loop.
  ///   - onStart: Called on the thread before it accepts work.
  ///   - onStop: Called on the thread when it no longer accepts work.
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
  /// Starts the thread that runs a test's body and optionally stands in for the main thread.
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
