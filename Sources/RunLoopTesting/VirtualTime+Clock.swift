// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

extension VirtualTime {
  /// The virtual time as a Swift clock, for code that takes one.
  ///
  /// Its instants are those of the loops: `clock.now` is `RunLoop.now`. `Task.sleep(for:clock:)` on it is exact, no
  /// matter on which executor the task runs, and ends with `CancellationError` when the task is cancelled.
  ///
  /// A sleep that still lasts when the body of ``onThisThread(realTimeLimit:_:)`` and its relatives has ended then ends
  /// with `CancellationError`, though the task is not cancelled. A sleep that begins afterwards lasts until its task is
  /// cancelled, because the time stands still.
  public struct Clock: _Concurrency.Clock {
    /// A point of the virtual time.
    public typealias Instant = SuspendingClock.Instant

    let timeline: Timeline

    /// The virtual time.
    public var now: Instant { timeline.now.instant }

    /// A nanosecond.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// Suspends the task until the virtual time reaches an instant.
    ///
    /// The tolerance is not used.
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

/// One sleep of a task, which ends once: by its time or by its cancellation.
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
    // It may have been cancelled meanwhile, or have happened.
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
