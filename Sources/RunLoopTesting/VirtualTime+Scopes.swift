// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Synchronization

// Running a test's body on virtual time.
extension VirtualTime {
  /// Runs a body on the calling thread, whose run loop is on a virtual time meanwhile.
  ///
  /// For code that the body runs on this thread, `RunLoop.current` is a new loop and `Thread.current` a new object;
  /// the thread's own are restored afterwards, unchanged. The new loop then ends with everything still in it. On the
  /// main thread, the loop is also `RunLoop.main` and serves the main dispatch queue, as in
  /// ``asMain(realTimeLimit:_:)``.
  ///
  /// - Parameters:
  ///   - realTimeLimit: How long in real time the test may sleep while nothing is due, or wait for another thread on
  ///     this time to sleep, before that is an error.
  ///   - body: The test, called with the time that it controls.
  /// - Throws: The body's error, or a ``VirtualTimeError`` if the time could not continue.
  public static func onThisThread<Value>(
    realTimeLimit: Duration = .seconds(10), _ body: (VirtualTime) throws -> Value
  ) throws -> Value {
    try runHere(asMain: isOnMainThread, realTimeLimit, body)
  }

  /// Runs a body as if the calling thread were the main thread, on a virtual time.
  ///
  /// This works like ``onThisThread(realTimeLimit:_:)``. In addition, for code that the body runs on this thread,
  /// `RunLoop.main` is its loop, `Thread.main` its object, and `Thread.isMainThread` is true. Other threads and tests
  /// that run in parallel are not affected. Code isolated to the main actor and the main dispatch queue are covered
  /// only on the real main thread, on which XCTest runs its tests and Swift Testing does not.
  ///
  /// - Parameters:
  ///   - realTimeLimit: How long in real time the test may sleep while nothing is due, or wait for another thread on
  ///     this time to sleep, before that is an error.
  ///   - body: The test, called with the time that it controls.
  /// - Throws: The body's error, or a ``VirtualTimeError`` if the time could not continue.
  public static func asMain<Value>(
    realTimeLimit: Duration = .seconds(10), _ body: (VirtualTime) throws -> Value
  ) throws -> Value {
    try runHere(asMain: true, realTimeLimit, body)
  }

  private static var isOnMainThread: Bool { RunLoop.isMainThread }

  private static func runHere<Value>(
    asMain: Bool, _ realTimeLimit: Duration, _ body: (VirtualTime) throws -> Value
  ) throws -> Value {
    let time = VirtualTime(realTimeLimit: realTimeLimit, hasOwner: false)
    let sleeper = time.timeline.join(name: "the test's thread", isOwner: true)
    let (loop, keeper) = time.makeLoop(sleeper: sleeper, prefix: "", servesMainQueue: isOnMainThread)
    time.add(keeper) { [weak loop] in loop?.stopForGood() }
    return try Thread.withStandIn(loop, asMain: asMain) {
      // Nothing moves the time after the body has returned.
      defer { time.timeline.end() }
      let result = Result { try body(time) }
      // This error is the cause of any error of the body.
      if let failure = time.timeline.failure { throw failure }
      return try result.get()
    }
  }

  /// Runs an `async` body on a resident thread whose virtual time moves by itself whenever every task waits.
  ///
  /// The body's task and its children prefer the thread, and so do the actors that they use without an executor of
  /// their own. All of them run there, and `Task.sleep` ends when the virtual time is reached. An instant of a real
  /// clock is rounded up to whole milliseconds from now. If the loop last slept a millisecond or more of real time
  /// ago, for example because the body computes, the end of a sleep may be off by that time; see
  /// <doc:TestingCodeThatWaits>. ``clock`` is exact.
  ///
  /// The time moves to the next deadline. To wait for something outside, such as another process, use
  /// ``standStill(isolation:while:)``. Sleeps of the main actor, of actors with other executors and of detached tasks
  /// take real time.
  ///
  /// As always in Swift, a `Task { … }` created by the body has no preferred executor. Create it with
  /// `Task(executorPreference: time.thread)` instead.
  ///
  /// When the body has returned, the thread stops after the work that it has accepted. Tasks that are still sleeping
  /// continue in real time; sleeps on ``clock`` throw `CancellationError`.
  ///
  /// - Parameters:
  ///   - asMain: Whether code on the thread sees its loop as `RunLoop.main`, its object as `Thread.main`, and
  ///     `Thread.isMainThread` as true. The default is `false`.
  ///   - realTimeLimit: How long in real time the body may wait while nothing is due, or for another thread on this
  ///     time to sleep, before that is an error.
  ///   - body: The test.
  /// - Throws: The body's error; a ``VirtualTimeError`` if the time could not continue, in which case the body is
  ///   cancelled and not awaited; or a `ThreadError` if no thread can be created.
  public static func onResidentThread<Value: Sendable>(
    asMain: Bool = false, realTimeLimit: Duration = .seconds(10),
    _ body: @escaping @Sendable (VirtualTime) async throws -> Value
  ) async throws -> Value {
    let time = VirtualTime(realTimeLimit: realTimeLimit, hasOwner: false)
    // Holds the time until the body has begun, so that no wait is reported as stuck.
    let caller = time.timeline.join(name: "the test's thread", isOwner: true)
    defer { time.timeline.leave(caller) }
    let thread = try time.makeThread(name: "virtual time", prefix: "", asMain: asMain, onStart: nil, onStop: nil)
    time.begin(on: thread, caller)
    let task = Task(executorPreference: thread) {
      time.timeline.leave(caller)
      // Nothing moves the time for tasks that outlive the body.
      defer { time.timeline.end() }
      return try await body(time)
    }
    let outcome = FirstOutcome<Value>()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        outcome.set(continuation)
        time.whenFailed { error in
          outcome.resume(with: .failure(error))
          task.cancel()
        }
        Task {
          let result = await task.result
          thread.stop()
          _ = await thread.finished()
          outcome.resume(with: result)
        }
      }
    } onCancel: {
      task.cancel()
    }
  }
}

/// Resumes a continuation with the first outcome.
private final class FirstOutcome<Value: Sendable>: @unchecked Sendable {
  // Sendable: guarded by the lock.
  private let lock = Lock()
  private var continuation: CheckedContinuation<Value, any Error>?

  func set(_ continuation: CheckedContinuation<Value, any Error>) {
    lock.withLock { self.continuation = continuation }
  }

  func resume(with result: Result<Value, any Error>) {
    let continuation = lock.withLock {
      defer { self.continuation = nil }
      return self.continuation
    }
    continuation?.resume(with: result)
  }
}
