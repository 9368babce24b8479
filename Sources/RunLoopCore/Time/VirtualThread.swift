// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// Runs `body` on a new thread whose loop is on virtual time, and waits until the thread and its loop have ended.
package func onVirtualTime<Result: Sendable>(
  _ body: @escaping @Sendable (SteppedTime, RunLoop) -> Result
) -> Result {
  onNewThread {
    let time = SteppedTime()
    return body(time, time.makeLoop())
  }
}

extension SteppedTime {
  /// Makes a loop on this time for the calling thread, which must have no loop yet.
  package func makeLoop() -> RunLoop {
    precondition(RunLoop.currentIfMade == nil, "the thread has a loop")
    return RunLoop.attach(makeStandIn())
  }

  /// Makes a loop on this time that can take the place of the calling thread's own.
  package func makeStandIn() -> RunLoop {
    RunLoop(threadID: RunLoop.callingThreadID, waiter: self)
  }
}

/// Runs `body` on a new thread and waits until the thread has ended.
package func onNewThread<Result: Sendable>(_ body: @escaping @Sendable () -> Result) -> Result {
  startThread(body).result()
}

/// Starts a thread.
package func startThread<Result: Sendable>(_ body: @escaping @Sendable () -> Result) -> StartedThread<Result> {
  StartedThread(body)
}

/// A thread with a result.
package final class StartedThread<Result: Sendable>: @unchecked Sendable {
  // Sendable: `thread` is written before the object is shared. `value` is written by the thread, and read after the
  // thread was joined.
  private var value: Result?
  private var thread = pthread_t()

  fileprivate init(_ body: @escaping @Sendable () -> Result) {
    let work = ThreadWork { self.value = body() }
    let answer = pthread_create(&thread, nil, threadMain, Unmanaged.passRetained(work).toOpaque())
    precondition(answer == 0, "no thread could be made (error \(answer))")
  }

  /// Waits until the thread has ended; may be called once.
  package func result() -> Result {
    pthread_join(thread, nil)
    guard let value else { preconditionFailure("the thread ended without a result") }
    return value
  }
}

private final class ThreadWork {
  let body: () -> Void

  init(_ body: @escaping () -> Void) {
    self.body = body
  }
}

private nonisolated func threadMain(_ work: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let work { Unmanaged<ThreadWork>.fromOpaque(work).takeRetainedValue().body() }
  return nil
}
