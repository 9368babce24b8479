// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Synchronization

// A test's body on virtual time.
extension VirtualTime {
  /// Runs a body on the calling thread, whose run loop is on a virtual time meanwhile.
  ///
  /// `RunLoop.current` is a fresh loop for code that runs in the body on this thread, and `Thread.current` a fresh
  /// object; the thread's own come back afterwards, unchanged. The fresh loop then ends, and so does everything that is
  /// still in it. On the main thread the loop is also `RunLoop.main`, and serves the main dispatch queue, as with
  /// ``asMain(realTimeLimit:_:)``.
  ///
  /// - Parameters:
  ///   - realTimeLimit: How long, in real time, the test may sleep while nothing is due, or wait for another thread on
  ///     this time that does not come to sleep, before that is an error.
  ///   - body: The test, with the time that it moves.
  /// - Throws: The body's error, or a ``VirtualTimeError`` if the time could not go on.
  public static func onThisThread<Value>(
    realTimeLimit: Duration = .seconds(10), _ body: (VirtualTime) throws -> Value
  ) throws -> Value {
    try runHere(asMain: isOnMainThread, realTimeLimit, body)
  }

  /// Runs a body as if the calling thread were the main thread, on a virtual time.
  ///
  /// It behaves like ``onThisThread(realTimeLimit:_:)``; moreover, for code that runs in the body on this thread,
  /// `RunLoop.main` is its loop, `Thread.main` its object, and `Thread.isMainThread` is true. Other threads, and tests
  /// that run in parallel, are not affected. Code that Swift isolates to the main actor, and the main dispatch queue,
  /// are only covered on the real main thread, where XCTest runs its tests, and Swift Testing does not.
  ///
  /// - Parameters:
  ///   - realTimeLimit: How long, in real time, the test may sleep while nothing is due, or wait for another thread on
  ///     this time that does not come to sleep, before that is an error.
  ///   - body: The test, with the time that it moves.
  /// - Throws: The body's error, or a ``VirtualTimeError`` if the time could not go on.
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
      // Nobody moves the time any more when the body has ended.
      defer { time.timeline.end() }
      let result = Result { try body(time) }
      // It is the reason for whatever went wrong in the body.
      if let failure = time.timeline.failure { throw failure }
      return try result.get()
    }
  }

  /// Runs an `async` body on a resident thread whose loop is on a virtual time, which moves by itself whenever every
  /// task waits.
  ///
  /// The body's task and its children prefer the thread, and so do the actors that they use, if those have no executor
  /// of their own: all of them run there, and `Task.sleep` ends when the virtual time is reached. An instant of a real
  /// clock is rounded up to whole milliseconds from now. If a millisecond or more of real time has passed since the
  /// loop last slept, for example because the body itself computes, it may be off by that real time;
  /// <doc:TestingCodeThatWaits> explains how. ``clock`` is exact.
  ///
  /// The time moves to the next date that anything waits for; to wait for something outside meanwhile, such as another
  /// process, use ``standStill(isolation:while:)``. Sleeps of the main actor, of actors with other executors and of
  /// detached tasks are real.
  ///
  /// A `Task { … }` that the body makes prefers no executor, as always in Swift: make it with `Task(executorPreference:
  /// time.thread)`.
  ///
  /// When the body has ended, the thread is stopped after the work that it had accepted. Tasks that sleep on go on in
  /// real time; sleeps on ``clock`` end with `CancellationError`.
  ///
  /// - Parameters:
  ///   - asMain: Whether `RunLoop.main` is the thread's loop, `Thread.main` its object and `Thread.isMainThread` true
  ///     for what runs on the thread.
  ///   - realTimeLimit: How long, in real time, the body may wait while nothing is due, or for another thread on this
  ///     time that does not come to sleep, before that is an error.
  ///   - body: The test.
  /// - Throws: The body's error, a ``VirtualTimeError`` if the time could not go on, in which case the body is
  ///   cancelled and left alone, or a `ThreadError` if no thread can be made.
  public static func onResidentThread<Value: Sendable>(
    asMain: Bool = false, realTimeLimit: Duration = .seconds(10),
    _ body: @escaping @Sendable (VirtualTime) async throws -> Value
  ) async throws -> Value {
    let time = VirtualTime(realTimeLimit: realTimeLimit, hasOwner: false)
    // Until the body has begun the time stands, and nobody is said to wait for anything.
    let caller = time.timeline.join(name: "the test's thread", isOwner: true)
    defer { time.timeline.leave(caller) }
    let thread = try time.makeThread(name: "virtual time", prefix: "", asMain: asMain, onStart: nil, onStop: nil)
    time.begin(on: thread, caller)
    let task = Task(executorPreference: thread) {
      time.timeline.leave(caller)
      // Nothing is moved any more for tasks that the body has left, and nobody waits for anything.
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

/// Resumes a continuation with whatever comes first.
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
