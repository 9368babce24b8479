// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

extension VirtualTime {
  /// The virtual time as a Swift clock, for code that takes one.
  ///
  /// Its instants are those of the loops: `clock.now` equals `RunLoop.now`. `Task.sleep(for:clock:)` on it is exact,
  /// whichever executor runs the task, and throws `CancellationError` when the task is cancelled.
  ///
  /// When the body of ``onThisThread(realTimeLimit:_:)`` and the related functions returns, sleeps still in progress
  /// throw `CancellationError`, although their tasks are not cancelled. The time no longer advances, so a sleep
  /// that begins later lasts until its task is cancelled.
  public struct Clock: _Concurrency.Clock {
    /// An instant of the virtual time.
    public typealias Instant = SuspendingClock.Instant

    let timeline: Timeline

    /// The current virtual time.
    public var now: Instant { timeline.now.instant }

    /// One nanosecond.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// Suspends the task until the virtual time reaches an instant, ignoring the tolerance.
    ///
    /// - Throws: `CancellationError`.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
      try Task.checkCancellation()
      let sleep = ClockSleep(timeline)
      try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { sleep.begin(until: Tick(deadline), $0) }
      } onCancel: {
        sleep.cancel()
      }
    }
  }

  /// The virtual time as a Swift clock.
  public var clock: Clock { Clock(timeline: timeline) }
}

/// A single sleep of a task, which ends once, on time or by cancellation.
private final class ClockSleep: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock.
  private let timeline: Timeline
  private let lock = Lock()
  private var continuation: CheckedContinuation<Void, any Error>?
  private var event: UInt64?
  private var isCancelled = false

  init(_ timeline: Timeline) { self.timeline = timeline }

  func begin(until deadline: Tick, _ continuation: CheckedContinuation<Void, any Error>) {
    let isCancelled = lock.withLock {
      if !self.isCancelled { self.continuation = continuation }
      return self.isCancelled
    }
    guard !isCancelled else { return continuation.resume(throwing: CancellationError()) }
    let event = timeline.add(
      at: deadline, name: "a sleep on the clock",
      giveUp: { [self] in take()?.resume(throwing: CancellationError()) }, { [self] in take()?.resume() })
    // The sleep may have been cancelled or have ended meanwhile.
    let isOver = lock.withLock {
      self.event = event
      return self.continuation == nil
    }
    if isOver { _ = timeline.remove(event) }
  }

  func cancel() {
    let event = lock.withLock {
      isCancelled = true
      return self.event
    }
    if let event { _ = timeline.remove(event) }
    take()?.resume(throwing: CancellationError())
  }

  private func take() -> CheckedContinuation<Void, any Error>? {
    lock.withLock {
      defer { continuation = nil }
      return continuation
    }
  }
}
