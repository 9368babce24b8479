// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore
import RunLoopThreads
import Synchronization

// Moving the time.
extension VirtualTime {
  /// The number of moves after which a time counts as never idle.
  static let mostMoves = 10_000

  /// Advances the time by a duration, running everything that comes due, in order and at its date.
  ///
  /// If the calling thread has a loop on this time, the loop runs in a mode, even if the mode is empty or other code
  /// stops the run; other loops on this time run on their own threads. When this returns, every loop has finished the
  /// work that was due by the end of the duration.
  ///
  /// - A repeating timer fires at each of its dates.
  /// - A timer with a tolerance fires when the loop wakes: at the end of its tolerance, together with another timer
  ///   that is due before then, or at the end of the duration.
  /// - A call-out that spends time with ``spend(_:)`` delays what is due meanwhile, as it would in real time.
  /// - A call-out may itself advance the time in a nested run, which leaves less for the outer call to do, or nothing.
  ///
  /// - Parameters:
  ///   - duration: The duration; with zero or less, only work that is ready or due now runs.
  ///   - mode: The mode in which the calling thread's loop runs.
  /// - Throws: A ``VirtualTimeError`` if the time cannot continue.
  @available(*, noasync, message: "in a task, sleep or wait on `VirtualTime.clock`: the time moves by itself")
  public func advance(by duration: Duration, inMode mode: RunLoop.Mode = .default) throws(VirtualTimeError) {
    try move(to: timeline.now + max(0, Int64(saturating: duration)), mode)
  }

  /// Advances the time to an instant, as ``advance(by:inMode:)`` does.
  ///
  /// If the instant has passed, only work that is ready or due now runs. Requires the thread of the loop that runs.
  ///
  /// - Parameters:
  ///   - instant: The instant to reach.
  ///   - mode: The mode in which the calling thread's loop runs.
  /// - Throws: A ``VirtualTimeError`` if the time cannot continue.
  @available(*, noasync, message: "in a task, wait on `VirtualTime.clock`: the time moves by itself")
  public func run(until instant: SuspendingClock.Instant, inMode mode: RunLoop.Mode = .default) throws(VirtualTimeError)
  {
    try move(to: max(timeline.now, Tick(instant)), mode)
  }

  /// Advances the time until nothing is pending: no timer has a date, no task sleeps and no scripted action is left.
  ///
  /// - Throws: ``VirtualTimeError/neverIdle(at:moves:pending:)`` after 10,000 dates, for example with a repeating
  ///   timer that is never invalidated.
  @available(*, noasync, message: "in a task, sleep or wait on `VirtualTime.clock`: the time moves by itself")
  public func runUntilIdle(inMode mode: RunLoop.Mode = .default) throws(VirtualTimeError) {
    try move(to: timeline.now, mode)
    var moves = 0
    while let next = nextTick(mode) {
      guard moves < Self.mostMoves else {
        throw .neverIdle(at: elapsed, moves: moves, pending: pending.map(\.description))
      }
      moves += 1
      try move(to: max(timeline.now, next), mode)
    }
  }

  /// Makes one pass of the calling thread's loop in a mode, without waiting or moving the time.
  ///
  /// - Returns: Whether anything other than observers was called.
  /// - Throws: ``VirtualTimeError/noLoop(thread:)``, or another ``VirtualTimeError``.
  @available(*, noasync, message: "a task cannot run the loop that runs it")
  @discardableResult
  public func step(inMode mode: RunLoop.Mode = .default) throws(VirtualTimeError) -> Bool {
    try check()
    guard let keeper = callersKeeper, let loop = keeper.loop else { throw .noLoop(thread: callersName) }
    guard !keeper.isInEvent else { throw .insideEvent(thread: callersName) }
    let before = keeper.callOuts
    guard loop.stay(in: mode, until: .distantPast) != nil else { throw .threadIsEnding(thread: callersName) }
    try check()
    return keeper.callOuts != before
  }

  private func check() throws(VirtualTimeError) { if let failure = timeline.failure { throw failure } }

  private var callersName: String { Thread.current.name.map { "thread \"\($0)\"" } ?? "the calling thread" }

  private func move(to target: Tick, _ mode: RunLoop.Mode) throws(VirtualTimeError) {
    try check()
    if let keeper = callersKeeper, let loop = keeper.loop {
      guard !keeper.isInEvent else { throw .insideEvent(thread: callersName) }
      guard keeper.sleeper.isOwner || !timeline.hasOwner else { throw .notOwner(thread: callersName) }
      try run(loop, keeper, to: target, mode)
    } else {
      guard let owner else { throw .notOwner(thread: callersName) }
      try moveWithoutLoop(owner, to: target)
    }
  }

  private func run(
    _ loop: RunLoop, _ keeper: LoopKeeper, to target: Tick, _ mode: RunLoop.Mode
  ) throws(VirtualTimeError) {
    while true {
      if timeline.now < target || loop.hasReadyWork(in: mode) {
        let result = loop.stay(in: mode, until: target)
        try check()
        guard result != nil else { throw .threadIsEnding(thread: callersName) }
      } else {
        // Other loops run what is due by now, and may post new work to this one.
        try wait(keeper.sleeper, until: target, events: keeper.runEvent)
        guard loop.hasReadyWork(in: mode) else { return }
      }
    }
  }

  private func moveWithoutLoop(_ owner: Timeline.Sleeper, to target: Tick) throws(VirtualTimeError) {
    guard !isOwnerMoving.exchange(true, ordering: .acquiringAndReleasing) else { throw .notOwner(thread: callersName) }
    defer { isOwnerMoving.store(false, ordering: .releasing) }
    try wait(owner, until: target) { $0() }
  }

  /// Sleeps on this time without a loop, until a date has been reached and all other sleepers sleep.
  func wait(
    _ sleeper: Timeline.Sleeper, until target: Tick, events run: (@Sendable () -> Void) -> Void
  ) throws(VirtualTimeError) {
    let word = SleepWord()
    defer { timeline.awaken(sleeper) }
    while true {
      try check()
      let seen = word.value
      let decision = timeline.fallAsleep(
        sleeper, .init(deadline: target, isEnding: { word.value != seen }, wake: { word.wake() }))
      switch decision {
      case .due: return
      case .event(let action): run(action)
      case .wait:
        guard !word.wait(while: seen, for: timeline.realTimeLimit) else { continue }
        let awake = timeline.awake
        guard awake.isEmpty else { throw .busy(threads: awake, after: timeline.realTimeLimit) }
      }
    }
  }

  /// Waits until all other sleepers sleep, if the calling thread is allowed to; does not move the time.
  func waitForOthers() {
    guard let keeper = callersKeeper else {
      guard let owner, !isOwnerMoving.exchange(true, ordering: .acquiringAndReleasing) else { return }
      defer { isOwnerMoving.store(false, ordering: .releasing) }
      try? wait(owner, until: .distantPast) { $0() }
      return
    }
    if !keeper.isInEvent, keeper.sleeper.isOwner {
      try? wait(keeper.sleeper, until: .distantPast, events: keeper.runEvent)
    }
  }

  /// The date of the next event, or nil if nothing is pending.
  func nextTick(_ mode: RunLoop.Mode) -> Tick? {
    waitForOthers()
    let keeper = callersKeeper
    let next = min(timeline.nextDeadline(besides: keeper?.sleeper ?? owner), keeper?.loop?.nextWake(in: mode) ?? .never)
    return next == .never ? nil : next
  }
}

/// The futex on which a thread without a loop sleeps.
private final class SleepWord: Sendable {
  private let word = Atomic<UInt32>(0)

  var value: UInt32 { word.load(ordering: .acquiring) }

  func wake() {
    word.wrappingAdd(1, ordering: .releasing)
    word.futexWake()
  }

  /// Waits to be woken; returns false after the limit of real time.
  func wait(while seen: UInt32, for limit: Duration) -> Bool {
    let end = Tick.after(limit)
    while value == seen {
      guard Tick.monotonicNow < end else { return false }
      word.futexWait(while: seen, until: end)
    }
    return true
  }
}
