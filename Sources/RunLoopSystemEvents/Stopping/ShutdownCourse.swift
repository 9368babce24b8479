// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// The state of a ``GracefulShutdown``: the steps that are waiting, are running or have ended.
final class ShutdownCourse: @unchecked Sendable {
  // Sendable: the lock guards all mutable state.

  private enum Phase {
    case waiting
    /// One step runs at a time.
    case draining
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

  /// Adds a step, or returns false if the shutdown is over.
  @discardableResult
  func add(_ name: String, _ drain: @escaping GracefulShutdown.Drain) -> Bool {
    lock.withLock { () -> Bool in
      if case .over = phase { return false }
      waiting.append((name, drain))
      // Advance in the same critical section, so that the shutdown cannot end in between. It does not end here either,
      // because there is a step to run.
      _ = advance()
      return true
    }
  }

  /// Called when a signal has arrived, possibly several times.
  func received(_ signal: Int32, count: Int) {
    let isFirst = begin(.signal(signal))
    guard !isFirst || count > 1 else { return }
    lock.withLock { cuttingSignal = cuttingSignal ?? signal }
    cut()
  }

  /// Begins the shutdown, or returns false if it has already begun.
  @discardableResult
  func begin(_ cause: GracefulShutdown.Cause) -> Bool {
    let isFirst = lock.withLock {
      guard case .waiting = phase else { return false }
      (phase, self.cause, start) = (.draining, cause, clock.now)
      return true
    }
    guard isFirst else { return false }
    setTimer(options.deadline, while: \.isDraining) { course in course.cut() }
    if let report = lock.withLock({ advance() }) { deliver(report) }
    return true
  }

  func cut() {
    let change = lock.withLock { () -> (tasks: [Task<Void, Never>], report: GracefulShutdown.Report?)? in
      guard case .draining = phase else { return nil }
      phase = .cut
      let tasks = running.values.map(\.task)
      return (tasks, advance())
    }
    guard let change else { return }
    // Cancel after unlocking, because cancellation handlers run in this call and may use the shutdown.
    for task in change.tasks { task.cancel() }
    if let report = change.report { return deliver(report) }
    setTimer(options.cutTime, while: \.isCut) { course in course.abandon() }
  }

  /// Replaces the timer with one for a phase, unless the phase has ended since it was set, in which case another
  /// thread may have installed the timer of the next phase.
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

// MARK: - Steps
extension ShutdownCourse {
  /// Starts the steps that are due, or ends the shutdown and returns its report; requires the lock.
  private func advance() -> GracefulShutdown.Report? {
    switch phase {
    case .waiting, .over: return nil
    case .draining: if running.isEmpty, let next = waiting.popLast() { run(next.name, next.drain, isCut: false) }
    case .cut: while let next = waiting.popLast() { run(next.name, next.drain, isCut: true) }
    }
    return running.isEmpty ? conclude() : nil
  }

  /// Starts a step; requires the lock.
  private func run(_ name: String, _ drain: @escaping GracefulShutdown.Drain, isCut: Bool) {
    lastID += 1
    let id = lastID
    let task = Task.detached { [self] in
      // The task cancels itself, so that the step is cancelled from the start and no cancellation handler of the step
      // runs with the lock held.
      if isCut { Self.cancelCurrentTask() }
      do {
        try await drain()
        stepEnded(id, Task.isCancelled ? .cut : .completed)
      } catch {
        stepEnded(id, Task.isCancelled ? .cut : .failed(error))
      }
    }
    running[id] = Running(name: name, start: clock.now, task: task)
  }

  private static func cancelCurrentTask() { withUnsafeCurrentTask { $0?.cancel() } }

  private func stepEnded(_ id: Int, _ outcome: GracefulShutdown.Outcome) {
    let report = lock.withLock { () -> GracefulShutdown.Report? in
      // A step that was abandoned may return later.
      guard let step = running.removeValue(forKey: id) else { return nil }
      ended.append(.init(name: step.name, outcome: outcome, duration: clock.now - step.start))
      return advance()
    }
    if let report { deliver(report) }
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
    if let report { deliver(report) }
  }

  /// Requires the lock.
  private func conclude() -> GracefulShutdown.Report {
    let report = GracefulShutdown.Report(
      cause: cause, cuttingSignal: cuttingSignal, steps: ended, duration: clock.now - start)
    phase = .over(report)
    return report
  }

  private func deliver(_ report: GracefulShutdown.Report) {
    let (waiters, places, timer) = lock.withLock {
      defer { (self.waiters, self.timer) = ([], nil) }
      return (self.waiters, self.places, self.timer)
    }
    timer?.invalidate()
    for waiter in waiters { waiter.resume(returning: report) }
    guard let handler else { return }
    // If no loop takes the block, the report is delivered when `delivery` is released.
    let delivery = Delivery(report, handler)
    for (index, place) in places.enumerated() where !places[..<index].contains(where: { $0.loop === place.loop }) {
      let modes = places.filter { $0.loop === place.loop }.map(\.mode)
      if !place.loop.takesNoItems, place.loop.perform(inModes: modes, block: { delivery.callHandler() }) { return }
    }
  }

  /// Calls the handler with the report exactly once: in a block on a loop or, if the block is released without having
  /// run, on the service thread.
  ///
  /// A loop that has accepted a block discards it if its thread ends first.
  private final class Delivery: Sendable {
    private let report: GracefulShutdown.Report
    private let handler: @Sendable (GracefulShutdown.Report) -> Void
    private let isDone = Atomic<Bool>(false)

    init(_ report: GracefulShutdown.Report, _ handler: @escaping @Sendable (GracefulShutdown.Report) -> Void) {
      self.report = report
      self.handler = handler
    }

    deinit {
      guard !isDone.load(ordering: .acquiring) else { return }
      ServiceThread.loop.perform { [report, handler] in handler(report) }
    }

    func callHandler() {
      if !isDone.exchange(true, ordering: .acquiringAndReleasing) { handler(report) }
    }
  }
}
