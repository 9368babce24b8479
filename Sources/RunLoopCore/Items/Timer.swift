/// A closure that a loop calls at a date, once or again and again.
///
/// Dates are of the monotonic clock: a change of the wall clock does not move them. A repeating timer keeps its phase: when
/// the loop is late, the missed dates are skipped, not made up. A timer is bound to one loop at a time, may be in any number
/// of its modes, and keeps the loop alive in each of them. It does not fire within its own call-out.
///
/// The corresponding Core Foundation type is `CFRunLoopTimer`.
public final class Timer: @unchecked Sendable, Hashable {
  // Sendable: all variables but the contents are guarded by the lock, and, while the timer is in a loop, written under the
  // loop's table lock too, but for the known wall date; the contents are guarded by the lease.

  let lock = Lock()
  let lease = Lease()
  /// Nanoseconds between two dates; zero: the timer fires once.
  let interval: Int64
  /// Seconds between two dates, as they were given; zero for a timer that fires once.
  ///
  /// Any thread.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopTimerGetInterval`.
  public let timeInterval: Double
  /// The loop that the timer is bound to: it is in one of its modes or among its common items.
  var loop: RunLoop?
  var slots = TimerSlots()
  /// When the timer is due.
  ///
  /// A date in the past counts from when it was set.
  var tick: Tick
  /// The date as it was set.
  var setTick: Tick
  /// The nanoseconds by which the loop may be late.
  private(set) var usableTolerance: Int64 = 0
  /// The present date by the wall clock: as it was set, or as it was when somebody first asked.
  var knownWallDate: Double?
  var isCommon = false
  /// Whether the loop is calling it: it stands in no heap meanwhile.
  var isFiring = false
  /// Whether it was given a date while it fired.
  var wasMoved = false
  private var contents: Contents?

  /// What the timer keeps alive until it ends.
  private struct Contents {
    let block: @Sendable (Timer) -> Void
    let attachment: Attachment?
  }

  /// What its maker has attached to a timer; most have nothing.
  private final class Attachment: Sendable {
    let value: any Sendable

    init(_ value: any Sendable) { self.value = value }
  }

  init(
    tick: Tick, wallDate: Double? = nil, interval: Int64, timeInterval: Double? = nil, tolerance: Int64,
    attachment: (any Sendable)? = nil, block: @escaping @Sendable (Timer) -> Void
  ) {
    self.setTick = tick
    self.tick = max(tick, RunLoop.currentWaiter.now)
    self.knownWallDate = wallDate
    self.interval = interval
    self.timeInterval = timeInterval ?? Double(interval) / 1e9
    self.contents = Contents(block: block, attachment: attachment.map(Attachment.init))
    storeTolerance(tolerance)
    if Sabotage.isPossible, let loop = RunLoop.currentIfMade, loop.sabotage.contains(.newTimersAdded) {
      loop.add(self, forMode: .default)
    }
  }

  /// Makes a timer that is in no mode yet.
  ///
  /// - Parameters:
  ///   - deadline: When it fires first. A date in the past: as soon as its loop runs.
  ///   - interval: The time between two dates. None, or one that is not positive: the timer fires once. Less than a
  ///     microsecond counts as one.
  ///   - tolerance: How much later than its date it may fire, so that several timers can share one wake-up. Negative
  ///     counts as zero; of a repeating timer at most half its interval is used.
  ///   - block: Called on the loop's thread with the timer. It is released when the timer is invalid and no call-out runs.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopTimerCreateWithHandler`.
  public convenience init(
    deadline: SuspendingClock.Instant, interval: Duration? = nil, tolerance: Duration = .zero,
    block: @escaping @Sendable (Timer) -> Void
  ) {
    let nanoseconds = interval.map { Timer.usableInterval(Int64(saturating: $0), isPositive: $0 > .zero) } ?? 0
    self.init(tick: Tick(deadline), interval: nanoseconds, tolerance: Int64(saturating: tolerance), block: block)
  }

  /// Makes a timer that is in no mode yet and first fires after `timeInterval` seconds.
  ///
  /// - Parameters:
  ///   - timeInterval: Seconds. Zero or less counts as 0.0001 s, as Foundation documents.
  ///   - repeats: Whether it fires again after each interval.
  ///   - block: Called on the loop's thread with the timer. It is released when the timer is invalid and no call-out runs.
  ///
  /// - Precondition: `timeInterval` is a number.
  ///
  /// The corresponding Foundation initializer is `Timer(timeInterval:repeats:block:)`.
  public convenience init(
    timeInterval: Double, repeats: Bool, block: @escaping @Sendable (Timer) -> Void
  ) {
    self.init(timeInterval: timeInterval, repeats: repeats, attachment: nil, block: block)
  }

  /// Makes a timer and adds it to the current thread's loop in the default mode.
  ///
  /// The parameters are those of ``init(timeInterval:repeats:block:)``. The corresponding Foundation method is
  /// `scheduledTimer(withTimeInterval:repeats:block:)`.
  @discardableResult
  public static func scheduledTimer(
    withTimeInterval interval: Double, repeats: Bool, block: @escaping @Sendable (Timer) -> Void
  ) -> Timer {
    let timer = Timer(timeInterval: interval, repeats: repeats, block: block)
    RunLoop.current.add(timer, forMode: .default)
    return timer
  }

  private static func usableInterval(_ nanoseconds: Int64, isPositive: Bool) -> Int64 {
    isPositive ? max(nanoseconds, 1000) : 0
  }

  /// Whether both are the same.
  public static func == (left: Timer, right: Timer) -> Bool { left === right }

  /// Hashes the identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension Timer {
  /// When the timer fires next; in its own call-out, the date for which it fires.
  ///
  /// A date reads back as it was set, also one in the past, which makes the timer due at once. Setting it gives the timer a
  /// new place behind all that have the same date, takes effect on a sleeping loop at once, and moves the phase of a
  /// repeating timer. An invalid timer keeps its last date. Any thread; O(log n) in the timers of each mode.
  ///
  /// The corresponding Core Foundation functions are `CFRunLoopTimerGetNextFireDate` and `CFRunLoopTimerSetNextFireDate`.
  public var deadline: SuspendingClock.Instant {
    get { lock.withLock { setTick }.instant }
    set { move(to: .tick(Tick(newValue))) }
  }

  /// How much later than its date the timer may fire, in seconds, so that several timers can share one wake-up.
  ///
  /// It reads back as it is used: negative and not a number are zero, and a repeating timer has at most half its interval. A
  /// late fire does not move the phase. Any thread. The corresponding Core Foundation functions are
  /// `CFRunLoopTimerGetTolerance` and `CFRunLoopTimerSetTolerance`.
  public var tolerance: Double {
    get { Double(lock.withLock { usableTolerance }) / 1e9 }
    set { setTolerance(newValue.isNaN ? 0 : Int64(saturatingSeconds: newValue)) }
  }

  /// Whether the timer can still fire.
  ///
  /// Any thread.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopTimerIsValid`.
  public var isValid: Bool { lease.isOpen }

  /// Calls the block now, on this thread.
  ///
  /// A repeating timer's dates stay as they are; a timer that fires once is invalidated. An invalid timer does nothing. The
  /// corresponding Foundation method is `fire()`.
  public func fire() {
    callOut()
    if interval == 0 { invalidate() }
  }

  /// Ends the timer for good: it leaves all modes and does not fire again.
  ///
  /// The block is released at once, or when its running call-out has returned. Any thread; again: nothing. The
  /// corresponding Core Foundation function is `CFRunLoopTimerInvalidate`.
  public func invalidate() {
    lock.lock()
    let closing = lease.close()
    let loop = loop
    lock.unlock()
    guard closing != .already else { return }
    loop?.expel(self)
    if closing == .release { releaseContents() }
  }
}

extension Timer {
  /// What was attached to the timer; nil once it has ended.
  ///
  /// Any thread.
  package var attachment: (any Sendable)? {
    guard hold() else { return nil }
    defer { letGo() }
    return contents?.attachment?.value
  }

  /// Calls the block unless the timer is invalid.
  func callOut() {
    guard lease.enter() else { return }
    if let block = contents?.block { runLoopIsCallingOutToATimer(block, self) }
    letGo()
  }

  private func releaseContents() {
    let released = contents
    contents = nil
    withExtendedLifetime(released) {}
  }

  /// Stores a tolerance.
  ///
  /// Under the timer's lock, and the loop's if there is one.
  func storeTolerance(_ nanoseconds: Int64) {
    usableTolerance = max(0, interval == 0 ? nanoseconds : min(nanoseconds, interval / 2))
  }
}

extension Timer: RunLoopItem {
  func lockItem() { lock.lock() }
  func unlockItem() { lock.unlock() }
  func hold() -> Bool { lease.enter() }
  func letGo() { if lease.leave() { releaseContents() } }
  var isOpen: Bool { lease.isOpen }
  func mayJoin(_ loop: RunLoop) -> Bool { self.loop == nil || self.loop === loop }

  func setCommon(_ isCommon: Bool, of loop: RunLoop) {
    self.isCommon = isCommon
    rebind(to: loop)
  }

  func modes(of loop: RunLoop) -> ShortList<ModeState> { self.loop === loop ? slots.modes : ShortList() }
  func isIn(_ mode: ModeState, of loop: RunLoop) -> Bool { self.loop === loop && slots.index(of: mode) != nil }

  func enter(_ mode: ModeState, of loop: RunLoop, _ table: inout ModeTable) {
    let slot = slots.insert(mode)
    mode.insert(self, slot: slot, insertion: loop.nextInsertion())
    rebind(to: loop)
  }

  func leave(_ mode: ModeState, of loop: RunLoop) {
    guard let slot = slots.index(of: mode) else { return }
    mode.remove(self, slot: slot)
    slots.remove(slot)
    rebind(to: loop)
  }

  private func rebind(to loop: RunLoop) {
    self.loop = slots.isEmpty && !isCommon ? nil : loop
  }
}

extension Timer: DeadlineHeapMember {
  func setPosition(_ position: Int32, slot: Int32, kind: DeadlineHeapKind) {
    slots.setPosition(position, slot: slot, kind: kind)
  }
}

extension Timer: CustomDebugStringConvertible {
  /// The item's state, in the shape of Core Foundation's description.
  public var debugDescription: String {
    lock.lock()
    let (firing, deadline, tolerance, loop) = (isFiring, setTick, usableTolerance, self.loop)
    lock.unlock()
    let now = (loop?.waiter ?? RunLoop.currentWaiter).now
    let ahead = deadline + (now.nanoseconds == .min ? 0 : -now.nanoseconds)
    let next = deadline == .never ? "never" : "\(Double(ahead.nanoseconds) / 1e9) @ \(deadline.nanoseconds)"
    return "<Timer \(addressDescription(self))>{valid = \(yesOrNo(isValid)), firing = \(yesOrNo(firing)), "
      + "interval = \(timeInterval), tolerance = \(Double(tolerance) / 1e9), next fire date = \(next)}"
  }
}
