// SPDX-License-Identifier: Apache-2.0

extension RunLoop {
  /// Suspends the calling task for a duration measured on the loop's clock.
  ///
  /// The sleep ends once the loop has run in the mode at or after that time. If a test controls the loop's time, there
  /// is no real wait. Can be called from any thread; the thread is not blocked.
  ///
  /// - Parameters:
  ///   - duration: How long to sleep. Zero or less means until the loop next runs.
  ///   - tolerance: How much longer the sleep may take, so that several timers can share one wake-up. A negative value
  ///     counts as zero. Defaults to zero.
  ///   - mode: The mode in which the loop ends the sleep. Defaults to ``Mode/common``.
  /// - Throws: `CancellationError` as soon as the task is cancelled, or ``RunLoopError/loopHasEnded`` or
  ///   ``RunLoopError/mainThreadHasLeft`` if the loop's thread has ended or ends meanwhile.
  public func sleep(for duration: Duration, tolerance: Duration = .zero, in mode: Mode = .common) async throws {
    try Task.checkCancellation()
    guard !takesNoItems else { throw endedError }
    let sleep = TaskSleep(in: self)
    defer { sleep.noteResumption() }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        sleep.begin(continuation)
        // The waiting task does not hold the timer, so that a loop that ends releases the last reference to it.
        start(sleep, duration, tolerance, mode)
      }
    } onCancel: {
      sleep.cancel()
    }
  }

  private func start(_ sleep: TaskSleep, _ duration: Duration, _ tolerance: Duration, _ mode: Mode) {
    let timer = Timer(tick: .never, interval: 0, tolerance: Int64(saturating: tolerance)) {
      [end = TaskSleep.End(of: sleep)] _ in end.come()
    }
    guard sleep.waits(for: timer), offer(timer, forMode: mode) else { return timer.invalidate() }
    timer.move(after: duration)
  }
}

/// A task's wait for a timer; the task is resumed once, by whatever ends the wait first.
private final class TaskSleep: @unchecked Sendable {
  // Sendable: the lock guards the variables; the thread that takes the continuation resumes it.

  /// An object held only by the timer's block: if it is released before the timer has fired, the loop has ended.
  final class End: Sendable {
    private let sleep: TaskSleep

    init(of sleep: TaskSleep) {
      self.sleep = sleep
    }

    func come() { sleep.end(.success(())) }

    deinit { sleep.end(.failure(sleep.loop?.endedError ?? .loopHasEnded)) }
  }

  weak let loop: RunLoop?
  private let lock = Lock()
  private weak var timer: Timer?
  private var continuation: CheckedContinuation<Void, any Error>?
  private var result: Result<Void, any Error>?

  init(in loop: RunLoop) {
    self.loop = loop
  }

  func begin(_ continuation: CheckedContinuation<Void, any Error>) {
    let result = lock.withLock {
      if self.result == nil { self.continuation = continuation }
      return self.result
    }
    if let result { continuation.resume(with: result) }
  }

  /// Stores the timer that ends the wait, and returns `false` if the wait is already over.
  func waits(for timer: Timer) -> Bool {
    lock.withLock {
      self.timer = timer
      return result == nil
    }
  }

  func cancel() {
    end(.failure(CancellationError()))
    // Called without the lock because it releases the timer block's captures.
    lock.withLock { timer }?.invalidate()
  }

  func end(_ result: Result<Void, any Error>) {
    let taken = lock.withLock {
      guard self.result == nil else { return nil as CheckedContinuation<Void, any Error>? }
      self.result = result
      return continuation.take()
    }
    taken?.resume(with: result)
  }

  func noteResumption() { lock.noteResumption() }
}
