// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
public import RunLoopCore

extension Thread {
  /// Runs a block on the thread when its loop runs in one of the given modes.
  ///
  /// The block is performed by a version 0 source of order 0, which the first perform adds to each of the modes. From
  /// then on the mode is not empty, and a run that returns after handling a source returns after performing this one.
  /// All blocks pending when the source is performed run in one call-out. Performs run in the order in which they were
  /// posted. They are not ordered relative to the loop's blocks and the jobs of actors, which run earlier in a pass.
  ///
  /// If the thread has been started but its loop is not yet running, the block waits until it runs. Can be called from
  /// any thread. The corresponding Foundation method is `perform(_:on:with:waitUntilDone:modes:)` without waiting.
  ///
  /// - Throws: ``ThreadError/notStarted(thread:)``, ``ThreadError/finished(thread:)``, ``ThreadError/noModes``, or, for
  ///   the main thread of a program with an `async` main, ``ThreadError/mainThreadHasLeft``.
  @discardableResult
  @inline(never)
  public func perform(
    inModes modes: [RunLoop.Mode] = [.common], _ block: @escaping @Sendable () -> Void
  ) throws(ThreadError) -> PerformToken {
    let keeper = keeper
    let task = PerformTask(owner: keeper, from: Origin(site: crl_call_site()), block)
    try post(task, to: keeper, inModes: modes)
    return PerformToken(task: task, timer: nil)
  }

  /// Runs a block on the thread and waits until it has run.
  ///
  /// On the thread itself, runs the block immediately.
  ///
  /// The corresponding Foundation method is `perform(_:on:with:waitUntilDone:modes:)` with waiting.
  ///
  /// - Parameters:
  ///   - modes: The modes in which the block may run.
  ///   - timeout: The maximum time to wait. The default is `nil`, which waits without a limit.
  ///   - body: The block.
  /// - Returns: The block's result.
  /// - Throws: The block's error, or a ``ThreadError``: those of ``perform(inModes:_:)``,
  ///   ``ThreadError/dropped(thread:)`` if the thread ends first, ``ThreadError/timedOut``,
  ///   ``ThreadError/wouldDeadlock(cycle:)``, and for the thread of a ``ResidentThread`` those of its `performAndWait`.
  @inline(never)
  public func performAndWait<Value: Sendable, Failure: Error>(
    inModes modes: [RunLoop.Mode] = [.common], timeout: Duration? = nil,
    _ body: @escaping @Sendable () throws(Failure) -> Value
  ) throws -> Value {
    try performAndWait(inModes: modes, timeout: timeout, from: Origin(site: crl_call_site()).waits, body)
  }

  // A separate function, because a specialised one is called through its generic form, which hides the original call
  // site.
  @_specialize(where Value == Void, Failure == Never)
  @inline(never)
  private func performAndWait<Value: Sendable, Failure: Error>(
    inModes modes: [RunLoop.Mode], timeout: Duration?, from origin: Origin,
    _ body: @escaping @Sendable () throws(Failure) -> Value
  ) throws -> Value {
    let me = Thread.current
    guard self !== me else { return try body() }
    return try me.answer(of: body, on: self, keeper, from: origin, inModes: modes, timeout: timeout)
  }

  /// Runs a block on the thread after a delay, when its loop runs in one of the given modes.
  ///
  /// The corresponding Foundation method is `perform(_:with:afterDelay:inModes:)`.
  ///
  /// - Throws: The errors of ``perform(inModes:_:)``.
  @discardableResult
  @inline(never)
  public func perform(
    afterDelay delay: Duration, inModes modes: [RunLoop.Mode] = [.default], _ block: @escaping @Sendable () -> Void
  ) throws(ThreadError) -> PerformToken {
    let keeper = keeper
    let task = PerformTask(owner: keeper, from: Origin(site: crl_call_site()), block)
    return PerformToken(task: task, timer: try post(task, to: keeper, afterDelay: delay, inModes: modes))
  }

  private func post(
    _ task: PerformTask, to keeper: ResidentCore?, afterDelay delay: Duration, inModes modes: [RunLoop.Mode]
  ) throws(ThreadError) -> Timer {
    guard !modes.isEmpty else { throw .noModes }
    if let keeper { return try keeper.post(task, afterDelay: delay, inModes: modes) }
    let loop = try loopForWork()
    let ticket = PerformTask.Ticket(task)
    let timer = Timer(deadline: loop.instant(after: max(delay, .zero))) { _ in ticket.run() }
    for mode in modes {
      guard loop.offer(timer, forMode: mode, from: task.origin) else {
        timer.invalidate()
        throw endedError
      }
    }
    return timer
  }

  private func post(
    _ task: PerformTask, to keeper: ResidentCore?, inModes modes: [RunLoop.Mode]
  ) throws(ThreadError) {
    guard !modes.isEmpty else { throw .noModes }
    if let keeper { return try keeper.post(task, inModes: modes) }
    let (loop, ticket) = (try loopForWork(), PerformTask.Ticket(task))
    guard loop.handOff(inModes: modes, from: task.origin, block: { ticket.run() }) else { throw endedError }
  }

  private func loopForWork() throws(ThreadError) -> RunLoop {
    if hasNotStarted { throw .notStarted(thread: label) }
    guard let loop = runLoop else { throw endedError }
    return loop
  }
}

// Waiting for another thread.
extension Thread {
  /// Runs a block on another thread, or through the core that manages it, and waits for the result.
  func answer<Value: Sendable, Failure: Error>(
    of body: @escaping @Sendable () throws(Failure) -> Value, on other: Thread, _ keeper: ResidentCore?,
    from origin: Origin, inModes modes: [RunLoop.Mode], timeout: Duration?
  ) throws -> Value {
    // Written before the work is over, and read only afterwards.
    nonisolated(unsafe) var answer: Result<Value, Failure>?
    let task = PerformTask(owner: keeper, from: origin) {
      do throws(Failure) {
        answer = .success(try body())
      } catch {
        answer = .failure(error)
      }
    }
    try wait(for: task, of: other, keeper, inModes: modes, timeout: timeout)
    guard let answer else { throw ThreadError.cancelled }
    return try answer.get()
  }

  /// Posts work to another thread, or to the core that manages it, and waits until it has run.
  func wait(
    for task: PerformTask, of other: Thread, _ keeper: ResidentCore?, inModes modes: [RunLoop.Mode], timeout: Duration?
  ) throws(ThreadError) {
    let deadline = timeout.map { Tick.after($0) } ?? .never
    do throws(ThreadError) {
      try beginWait(for: task, of: other)
      defer { endWait() }
      try other.post(task, to: keeper, inModes: modes)
      try sleep(for: task, of: other, until: deadline)
    } catch {
      // The caller no longer waits, so the work must not begin.
      task.end(.cancelled)
      throw error
    }
    switch task.state {
    case .ran: return
    case .dropped: throw .dropped(thread: other.label)
    case .pending, .running, .cancelled: throw .cancelled
    }
  }
}
