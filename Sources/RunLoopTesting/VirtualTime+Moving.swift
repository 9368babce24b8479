// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore
import RunLoopThreads
import Synchronization

// Moving the time.
extension VirtualTime {
  /// After how many moves a time is said never to be idle.
  static let mostMoves = 10_000

  /// Lets a duration pass: everything that comes due in it is called, in order and at its date.
  ///
  /// On a thread with a loop on this time, the loop runs in a mode, and goes on though the mode is empty or somebody
  /// stops the run; other loops on this time run on their threads. When it returns, every loop has done all that there
  /// was to do by the end of the duration.
  ///
  /// - A repeating timer fires at each of its dates.
  /// - A timer with a tolerance fires when the loop wakes: at the end of its tolerance, with another one that is due by
  ///   then, or at the end of the duration.
  /// - A call-out that lets time pass itself, with ``spend(_:)``, makes what is due meanwhile late, as it would be.
  /// - A call-out may advance the time too: that is a nested run, and the outer call has less left to do, or nothing.
  ///
  /// - Parameters:
  ///   - duration: How much time; zero or less lets everything run that is ready or due now.
  ///   - mode: The mode in which the calling thread's loop runs.
  /// - Throws: A ``VirtualTimeError`` if the time cannot go on.
  @available(*, noasync, message: "in a task, sleep or wait on `VirtualTime.clock`: the time moves by itself")
  public func advance(by duration: Duration, inMode mode: RunLoop.Mode = .default) throws(VirtualTimeError) {
    try move(to: timeline.now + max(0, Int64(saturating: duration)), mode)
  }

  /// Lets the time go on until an instant, as ``advance(by:inMode:)`` does.
  ///
  /// An instant that has passed makes everything run that is ready or due now. Called on the thread of the loop that
  /// runs.
  ///
  /// - Parameters:
  ///   - instant: The instant to reach.
  ///   - mode: The mode in which the calling thread's loop runs.
  /// - Throws: A ``VirtualTimeError`` if the time cannot go on.
  @available(*, noasync, message: "in a task, wait on `VirtualTime.clock`: the time moves by itself")
  public func run(until instant: SuspendingClock.Instant, inMode mode: RunLoop.Mode = .default) throws(VirtualTimeError)
  {
    try move(to: max(timeline.now, Tick(instant)), mode)
  }

  /// Lets the time go on until nothing is to come any more: no timer has a date, no task sleeps, no action of the
  /// script is left.
  ///
  /// - Throws: ``VirtualTimeError/neverIdle(at:moves:pending:)`` after 10 000 dates, as with a repeating timer that
  ///   nobody ends.
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

  /// Makes the calling thread's loop make one pass in a mode, without a wait; the time stands still.
  ///
  /// - Returns: Whether anything except observers was called.
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
        // The others do what is due by now, and may give this loop something more.
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

  /// Sleeps on this time without a loop, until a date and until everybody else sleeps.
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

  /// Waits until everybody else sleeps, if the calling thread may; the time stands.
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

  /// When the next thing happens; nil if nothing is to come.
  func nextTick(_ mode: RunLoop.Mode) -> Tick? {
    waitForOthers()
    let keeper = callersKeeper
    let next = min(timeline.nextDeadline(besides: keeper?.sleeper ?? owner), keeper?.loop?.nextWake(in: mode) ?? .never)
    return next == .never ? nil : next
  }
}

/// What a thread sleeps on that waits for loops.
private final class SleepWord: Sendable {
  private let word = Atomic<UInt32>(0)

  var value: UInt32 { word.load(ordering: .acquiring) }

  func wake() {
    word.wrappingAdd(1, ordering: .releasing)
    word.futexWake()
  }

  /// Waits until somebody wakes; false if that took too long in real time.
  func wait(while seen: UInt32, for limit: Duration) -> Bool {
    let end = Tick.after(limit)
    while value == seen {
      guard Tick.monotonicNow < end else { return false }
      word.futexWait(while: seen, until: end)
    }
    return true
  }
}
