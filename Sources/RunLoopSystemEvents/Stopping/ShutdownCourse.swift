// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The course of a ``GracefulShutdown``: which steps wait, run and have ended.
final class ShutdownCourse: @unchecked Sendable {
  // Sendable: the lock guards what can change.

  private typealias Shutdown = GracefulShutdown

  private enum Phase {
    case waiting
    /// One step runs at a time.
    case draining
    /// All run that are left, cancelled.
    case cut
    case over(GracefulShutdown.Report)

    var isDraining: Bool { if case .draining = self { true } else { false } }
    var isCut: Bool { if case .cut = self { true } else { false } }
  }

  /// Schedules a timer that calls a block once, after a duration.
  typealias Schedule = @Sendable (Duration, @escaping @Sendable (Timer) -> Void) -> Timer

  private struct Running {
    let name: String
    let start: SuspendingClock.Instant
    let task: Task<Void, Never>
  }

  private let options: GracefulShutdown.Options
  private let handler: (@Sendable (GracefulShutdown.Report) -> Void)?
  private let schedule: Schedule
  private let clock = SuspendingClock()
  private let lock = Lock()
  private var phase = Phase.waiting
  private var waiting: [(name: String, drain: GracefulShutdown.Drain)] = []
  private var running: [Int: Running] = [:]
  private var lastID = 0
  private var ended: [GracefulShutdown.Step] = []
  private var cause = GracefulShutdown.Cause.request
  private var cuttingSignal: Int32?
  private var start: SuspendingClock.Instant
  private var places: [(loop: RunLoop, mode: RunLoop.Mode)] = []
  private var waiters: [CheckedContinuation<GracefulShutdown.Report, Never>] = []
  private var timer: Timer?

  init(
    _ options: GracefulShutdown.Options, _ handler: (@Sendable (GracefulShutdown.Report) -> Void)?,
    schedule: @escaping Schedule = { time, block in ServiceThread.loop.schedule(in: time, block: block) }
  ) {
    self.options = options
    self.handler = handler
    self.schedule = schedule
    start = clock.now
  }

  var hasBegun: Bool { lock.withLock { if case .waiting = phase { false } else { true } } }

  func enter(_ loop: RunLoop, _ mode: RunLoop.Mode) { lock.withLock { places.append((loop, mode)) } }

  func leave(_ loop: RunLoop, _ mode: RunLoop.Mode) {
    lock.withLock { places.removeAll { $0.loop === loop && $0.mode == mode } }
  }

  func add(_ name: String, _ drain: @escaping GracefulShutdown.Drain) {
    lock.withLock { waiting.append((name, drain)) }
    // All that were there may run already.
    advance()
  }

  /// A signal has arrived, perhaps several times.
  func received(_ signal: Int32, count: Int) {
    let isFirst = begin(.signal(signal))
    guard !isFirst || count > 1 else { return }
    lock.withLock { cuttingSignal = cuttingSignal ?? signal }
    cut()
  }

  /// Begins; returns false if that was done before.
  @discardableResult
  func begin(_ cause: GracefulShutdown.Cause) -> Bool {
    let isFirst = lock.withLock {
      guard case .waiting = phase else { return false }
      (phase, self.cause, start) = (.draining, cause, clock.now)
      return true
    }
    guard isFirst else { return false }
    setTimer(options.deadline, while: \.isDraining) { course in course.cut() }
    advance()
    return true
  }

  /// Cancels what runs, and starts the rest.
  func cut() {
    let isFirst = lock.withLock {
      guard case .draining = phase else { return false }
      phase = .cut
      for next in running.values { next.task.cancel() }
      return true
    }
    guard isFirst else { return }
    setTimer(options.cutTime, while: \.isCut) { course in course.abandon() }
    advance()
  }

  /// Replaces the timer with one for a phase, unless the phase has ended since it was set: another thread may have
  /// installed the timer of the next one.
  private func setTimer(
    _ time: Duration, while isCurrent: KeyPath<Phase, Bool>, _ body: @escaping @Sendable (ShutdownCourse) -> Void
  ) {
    let next = schedule(time) { [self] _ in body(self) }
    lock.withLock { () -> Timer? in
      guard phase[keyPath: isCurrent] else { return next }
      defer { timer = next }
      return timer
    }?.invalidate()
  }

  func finished() async -> GracefulShutdown.Report {
    await withCheckedContinuation { continuation in
      let report = lock.withLock { () -> GracefulShutdown.Report? in
        if case .over(let report) = phase { return report }
        waiters.append(continuation)
        return nil
      }
      if let report { continuation.resume(returning: report) }
    }
  }
}

// Steps.
extension ShutdownCourse {
  /// Starts what is next, or ends.
  private func advance() {
    let report = lock.withLock { () -> GracefulShutdown.Report? in
      switch phase {
      case .waiting, .over: return nil
      case .draining: if running.isEmpty, let next = waiting.popLast() { run(next.name, next.drain) }
      case .cut: while let next = waiting.popLast() { run(next.name, next.drain) }
      }
      return running.isEmpty ? conclude() : nil
    }
    if let report { tell(report) }
  }

  /// Under the lock.
  private func run(_ name: String, _ drain: @escaping GracefulShutdown.Drain) {
    lastID += 1
    let id = lastID
    let task = Task.detached { [self] in
      do {
        try await drain()
        stepEnded(id, Task.isCancelled ? .cut : .completed)
      } catch {
        stepEnded(id, Task.isCancelled ? .cut : .failed(error))
      }
    }
    if case .cut = phase { task.cancel() }
    running[id] = Running(name: name, start: clock.now, task: task)
  }

  private func stepEnded(_ id: Int, _ outcome: GracefulShutdown.Outcome) {
    lock.withLock {
      // What was abandoned may return in the end.
      guard let step = running.removeValue(forKey: id) else { return }
      ended.append(.init(name: step.name, outcome: outcome, duration: clock.now - step.start))
    }
    advance()
  }

  private func abandon() {
    let report = lock.withLock { () -> GracefulShutdown.Report? in
      guard case .cut = phase else { return nil }
      for (_, step) in running.sorted(by: { $0.key < $1.key }) {
        ended.append(.init(name: step.name, outcome: .abandoned, duration: clock.now - step.start))
      }
      running = [:]
      return conclude()
    }
    if let report { tell(report) }
  }

  /// Under the lock.
  private func conclude() -> GracefulShutdown.Report {
    let report = GracefulShutdown.Report(
      cause: cause, cuttingSignal: cuttingSignal, steps: ended, duration: clock.now - start)
    phase = .over(report)
    return report
  }

  private func tell(_ report: GracefulShutdown.Report) {
    let (waiters, places, timer) = lock.withLock {
      defer { (self.waiters, self.timer) = ([], nil) }
      return (self.waiters, self.places, self.timer)
    }
    timer?.invalidate()
    for waiter in waiters { waiter.resume(returning: report) }
    guard let handler else { return }
    for (index, place) in places.enumerated() where !places[..<index].contains(where: { $0.loop === place.loop }) {
      let modes = places.filter { $0.loop === place.loop }.map(\.mode)
      if !place.loop.takesNoItems, place.loop.perform(inModes: modes, block: { handler(report) }) { return }
    }
    ServiceThread.loop.perform { handler(report) }
  }
}
