// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
public import RunLoopCore

extension Thread {
  /// Runs a block on the thread, when its loop runs in one of several modes.
  ///
  /// The work is performed by a source of version 0 and order 0, which the first perform leaves in each of the modes:
  /// from then on the mode is not empty, and a run that returns after a source returns after it. All work that is there
  /// when the source is performed is done in one call-out. Performs keep their order among each other. They have no
  /// order against blocks of the loop and the jobs of actors, which come first in a pass.
  ///
  /// A thread that has been started and whose loop does not run yet keeps the work until then. Can be called from any
  /// thread. The corresponding Foundation method is `perform(_:on:with:waitUntilDone:modes:)` without waiting.
  ///
  /// - Throws: ``ThreadError/notStarted(thread:)``, ``ThreadError/finished(thread:)``, ``ThreadError/noModes``, or, for
  ///   the main thread of a program with an `async` main, ``ThreadError/mainThreadHasLeft``.
  @discardableResult
  @inline(never)
  public func perform(
    inModes modes: [RunLoop.Mode] = [.common], _ block: @escaping @Sendable () -> Void
  ) throws(ThreadError) -> PerformToken {
    let task = PerformTask(owner: keeper, from: Origin(site: crl_call_site()), block)
    try post(task, inModes: modes)
    return PerformToken(task: task, timer: nil)
  }

  /// Runs a block on the thread and waits until it has run.
  ///
  /// On the thread itself the block runs at once. The corresponding Foundation method is
  /// `perform(_:on:with:waitUntilDone:modes:)` with waiting.
  ///
  /// - Parameters:
  ///   - modes: The modes in which the block may run.
  ///   - timeout: How long to wait; nil means as long as it takes.
  ///   - body: The block.
  /// - Returns: What the block returns.
  /// - Throws: What the block throws, or a ``ThreadError``: as ``perform(inModes:_:)``, and
  ///   ``ThreadError/dropped(thread:)`` if the thread ends first, ``ThreadError/timedOut``,
  ///   ``ThreadError/wouldDeadlock(cycle:)``.
  @inline(never)
  public func performAndWait<Value: Sendable, Failure: Error>(
    inModes modes: [RunLoop.Mode] = [.common], timeout: Duration? = nil,
    _ body: @escaping @Sendable () throws(Failure) -> Value
  ) throws -> Value {
    try performAndWait(inModes: modes, timeout: timeout, from: Origin(site: crl_call_site()).waits, body)
  }

  // Apart: a function that is specialised is called by its general form, and not from where that was called.
  @_specialize(where Value == Void, Failure == Never)
  @inline(never)
  private func performAndWait<Value: Sendable, Failure: Error>(
    inModes modes: [RunLoop.Mode], timeout: Duration?, from origin: Origin,
    _ body: @escaping @Sendable () throws(Failure) -> Value
  ) throws -> Value {
    try Thread.current.wait(for: body, on: self, owner: keeper, from: origin, timeout: timeout) {
      task throws(ThreadError) in try post(task, inModes: modes)
    }
  }

  /// Runs a block on the thread after a time, when its loop runs in one of several modes.
  ///
  /// The corresponding Foundation method is `perform(_:with:afterDelay:inModes:)`.
  ///
  /// - Throws: As ``perform(inModes:_:)``.
  @discardableResult
  @inline(never)
  public func perform(
    afterDelay delay: Duration, inModes modes: [RunLoop.Mode] = [.default], _ block: @escaping @Sendable () -> Void
  ) throws(ThreadError) -> PerformToken {
    let task = PerformTask(owner: keeper, from: Origin(site: crl_call_site()), block)
    return PerformToken(task: task, timer: try post(task, afterDelay: delay, inModes: modes))
  }

  private func post(
    _ task: PerformTask, afterDelay delay: Duration, inModes modes: [RunLoop.Mode]
  ) throws(ThreadError) -> Timer {
    guard !modes.isEmpty else { throw .noModes }
    if let keeper { return try keeper.post(task, afterDelay: delay, inModes: modes) }
    let loop = try loopForWork()
    let ticket = task.ticket
    let timer = Timer(deadline: loop.instant(after: max(delay, .zero))) { _ in ticket() }
    for mode in modes {
      guard loop.add(timer, forMode: mode, from: task.origin) else {
        timer.invalidate()
        throw endedError
      }
    }
    return timer
  }

  private func post(_ task: PerformTask, inModes modes: [RunLoop.Mode]) throws(ThreadError) {
    guard !modes.isEmpty else { throw .noModes }
    if let keeper { return try keeper.post(task, inModes: modes) }
    guard try loopForWork().handOff(inModes: modes, from: task.origin, block: task.ticket) else { throw endedError }
  }

  /// Lets a thread run a block and waits for what it gives; on the calling thread.
  ///
  /// Apart from the public functions, which are specialised for the most common types: for others the runtime looks up
  /// that of the answer, in each call.
  @inline(never)
  func wait<Value: Sendable, Failure: Error>(
    for work: @escaping @Sendable () throws(Failure) -> Value, on other: Thread, owner: ResidentCore?,
    from origin: Origin, timeout: Duration?, post: (PerformTask) throws(ThreadError) -> Void
  ) throws -> Value {
    if other === self { return try work() }
    // Written before the work is over, read after.
    nonisolated(unsafe) var answer: Result<Value, Failure>?
    let task = PerformTask(owner: owner, from: origin) {
      do throws(Failure) {
        answer = .success(try work())
      } catch {
        answer = .failure(error)
      }
    }
    do throws(ThreadError) {
      try wait(for: task, of: other, until: timeout.map { Tick.after($0) } ?? .never) { () throws(ThreadError) in
        try post(task)
      }
    } catch {
      // Nobody waits for it any more: it does not begin.
      task.end(.cancelled)
      throw error
    }
    switch task.state {
    case .dropped: throw ThreadError.dropped(thread: other.label)
    case .pending, .running, .ran, .cancelled:
      guard let answer else { throw ThreadError.cancelled }
      return try answer.get()
    }
  }

  private func loopForWork() throws(ThreadError) -> RunLoop {
    if hasNotStarted { throw .notStarted(thread: label) }
    guard let loop = runLoop else { throw endedError }
    return loop
  }
}
