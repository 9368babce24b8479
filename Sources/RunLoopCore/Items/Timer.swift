// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

/// A closure that a loop calls at a date, once or repeatedly.
///
/// Dates are of the monotonic clock: a change of the wall clock does not move them. A repeating timer keeps its phase:
/// when the loop is late, the missed dates are skipped, not made up. A timer is bound to one loop at a time, may be in
/// any number of its modes, and keeps the loop alive in each of them. It does not fire within its own call-out.
///
/// The class is final. With RunLoopKit, a loop also takes a subclass of `Foundation.Timer`.
///
/// The corresponding Core Foundation type is `CFRunLoopTimer`.
public final class Timer: @unchecked Sendable {
  // Sendable: `home` says what guards the variables; the body and what is attached are guarded by the reference.

  let lock = Lock()
  /// Its mark says that a timer that fires once has been called.
  let reference = HandlerReference()
  /// The loop that the timer is bound to or was last, and whose table lock then guards all variables; zero: the timer's
  /// own lock does.
  ///
  /// It changes under the timer's lock, and under the lock of the table that it names.
  ///
  /// Relaxed where it is read under both locks that it changes under, and at the end, when no other thread has the
  /// timer.
  let homeAddress: Atomic<UInt>
  /// Nanoseconds between two dates; zero: the timer fires once.
  let interval: Int64
  @exclusivity(unchecked) var slots = TimerSlots()
  /// When the timer is due.
  ///
  /// A date in the past counts from when it was set.
  @exclusivity(unchecked) var tick: Tick
  private var hasAttachment = false
  @exclusivity(unchecked) var isCommon = false
  /// Whether the loop is calling it: it stands in no heap meanwhile.
  @exclusivity(unchecked) var isFiring = false
  /// Whether it was given a date while it fired.
  @exclusivity(unchecked) var wasMoved = false
  @exclusivity(unchecked) private var body: Body?

  private struct Call {
    let body: @Sendable (Timer) -> Void
  }

  /// Not copied: a call needs no reference to the closure but the timer's, which the handler reference keeps.
  private struct Body: ~Copyable {
    let call: Call
  }

  /// The user's function; the loop's thread, which is about to call it.
  var code: UInt64 {
    switch body {
    case .some(let body): ClosureCode.first(of: body.call)
    case nil: 0
    }
  }

  init(
    tick: Tick, now: Tick? = nil, wallDate: Double? = nil, interval: Int64, timeInterval: Double? = nil,
    tolerance: Int64, block: @escaping @Sendable (Timer) -> Void
  ) {
    self.interval = interval
    self.tick = tick
    self.body = Body(call: Call(body: block))
    // Who makes a timer mostly adds it to the loop of his own thread. The timer holds that loop's object until it is
    // added to another or goes.
    homeAddress = Atomic(RunLoop.retainedCurrentAddress())
    let now = now ?? RunLoop.currentNow(unlessAheadOf: tick)
    if tick < now {
      self.tick = now
      slots.makeRare().setTick = tick
    }
    if let wallDate { slots.makeRare().knownWallDate = wallDate }
    if let timeInterval, timeInterval != Double(interval) / 1e9 { slots.makeRare().timeInterval = timeInterval }
    if tolerance > 0 { storeTolerance(tolerance) }
  }

  deinit {
    slots.end()
    RunLoop.giveBack(homeAddress.load(ordering: .relaxed))
  }

  /// Makes a timer that is in no mode yet.
  ///
  /// - Parameters:
  ///   - deadline: When it fires first. A date in the past: as soon as its loop runs.
  ///   - interval: The time between two dates. None, or one that is not positive: the timer fires once. Less than a
  ///     microsecond counts as one.
  ///   - tolerance: How much later than its date it may fire, so that several timers can share one wake-up. Negative
  ///     counts as zero; of a repeating timer at most half its interval is used.
  ///   - block: Called on the loop's thread with the timer. It is released when the timer is invalid and no call-out
  ///     runs.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopTimerCreateWithHandler`.
  public convenience init(
    deadline: SuspendingClock.Instant, interval: Duration? = nil, tolerance: Duration = .zero,
    block: @escaping @Sendable (Timer) -> Void
  ) {
    self.init(
      tick: Tick(deadline), interval: Timer.usableInterval(interval), tolerance: Int64(saturating: tolerance),
      block: block)
  }

  /// Makes a timer that is in no mode yet and first fires after `timeInterval` seconds.
  ///
  /// - Parameters:
  ///   - timeInterval: Seconds. Zero or less counts as 0.0001 s, as Foundation documents.
  ///   - repeats: Whether it fires again after each interval.
  ///   - block: Called on the loop's thread with the timer. It is released when the timer is invalid and no call-out
  ///     runs.
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
  @inline(never)
  public static func scheduledTimer(
    withTimeInterval interval: Double, repeats: Bool, block: @escaping @Sendable (Timer) -> Void
  ) -> Timer {
    let origin = Origin(site: crl_call_site())
    let timer = Timer(timeInterval: interval, repeats: repeats, block: block)
    _ = RunLoop.current.add(timer, forMode: .default, from: origin)
    return timer
  }

  /// The nanoseconds between two dates; zero: the timer fires once.
  static func usableInterval(_ interval: Duration?) -> Int64 {
    guard let interval, interval > .zero else { return 0 }
    return max(Int64(saturating: interval), 1000)
  }
}

extension Timer {
  /// When the timer fires next; in its own call-out, the date for which it fires.
  ///
  /// A date reads back as it was set, also one in the past, which makes the timer due at once. Setting it moves the
  /// timer behind all timers of the same date, takes effect on a sleeping loop at once, and moves the phase of a
  /// repeating timer. An invalid timer keeps its last date. Can be used from any thread.
  ///
  /// The corresponding Core Foundation functions are `CFRunLoopTimerGetNextFireDate` and
  /// `CFRunLoopTimerSetNextFireDate`.
  ///
  /// - Complexity: O(log n) in the timers of each mode.
  public var deadline: SuspendingClock.Instant {
    get { guarded { _ in setTick }.instant }
    @inline(never) set {
      let site = crl_call_site()
      move(to: .tick(Tick(newValue)), from: site)
    }
  }

  /// How much later than its date the timer may fire, in seconds, so that several timers can share one wake-up.
  ///
  /// It reads back as it is used: negative and not a number are zero, and a repeating timer has at most half its
  /// interval. A late fire does not move the phase. Can be used from any thread. The corresponding Core Foundation
  /// functions are `CFRunLoopTimerGetTolerance` and `CFRunLoopTimerSetTolerance`.
  public var tolerance: Double {
    get { Double(guarded { _ in usableTolerance }) / 1e9 }
    set { setTolerance(newValue.isNaN ? 0 : Int64(saturatingSeconds: newValue)) }
  }

  /// Seconds between two dates, as they were given; zero for a timer that fires once.
  ///
  /// Can be used from any thread.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopTimerGetInterval`.
  public var timeInterval: Double { guarded { _ in slots.rare?.timeInterval } ?? Double(interval) / 1e9 }

  /// Whether the timer can still fire.
  ///
  /// Can be used from any thread.
  ///
  /// The corresponding Core Foundation function is `CFRunLoopTimerIsValid`.
  public var isValid: Bool { reference.isOpen }

  /// Calls the block now, on this thread.
  ///
  /// A repeating timer's dates stay as they are. A timer that fires once is invalidated when its block has returned,
  /// and its block is called once, by whichever comes first: if it has been called already, by another thread or by the
  /// loop, this has no effect. An invalid timer does nothing. Can be called from any thread.
  ///
  /// The corresponding Foundation method is `fire()`.
  public func fire() {  // To override it, subclass Foundation.Timer: this class is final.
    if callOut(), interval == 0 { invalidate() }
  }

  /// Ends the timer permanently: it leaves all modes and does not fire again.
  ///
  /// The block is released at once, or when its running call-out has returned. Can be called from any thread. Calling
  /// it again has no effect. The corresponding Core Foundation function is `CFRunLoopTimerInvalidate`.
  public func invalidate() {  // To override it, subclass Foundation.Timer: this class is final.
    let closing = reference.close()
    guard closing != .already else { return }
    // Whoever adds the timer from now on finds it closed, under the lock that is taken here.
    if !leaveHomeHere() { holder?.expel(self) }
    if closing == .release { releaseContents() }
  }
}

extension Timer {
  /// What was attached to the timer; nil once it has ended.
  ///
  /// Any thread.
  package var attachment: (any Sendable)? {
    guard hasAttachment, hold() else { return nil }
    defer { letGo() }
    return guarded { _ in slots.rare?.attachment }
  }

  /// Attaches something to a timer that nobody but its maker has yet.
  func attach(_ value: any Sendable) {
    slots.makeRare().attachment = value
    hasAttachment = true
  }

  /// Calls the block, unless the timer is invalid, or fires once and has been called; true if it was called.
  @discardableResult
  func callOut() -> Bool {
    // That it was called stays marked: nobody else may come between the call and the timer's end.
    guard interval == 0 ? reference.enterMarking() : reference.enter() else { return false }
    switch body {
    case .some(let body): runLoopIsCallingOutToATimer(body.call.body, self)
    case nil: break
    }
    letGo()
    return true
  }

  func releaseContents() {
    if hasAttachment { releaseAttachment() }
    _ = body.take()
  }

  @inline(never)
  private func releaseAttachment() {
    let released = guarded { _ in slots.rare?.takeAttachment() }
    withExtendedLifetime(released) {}
  }
}

extension Timer: ModeItem {
  func lockItem() { lock.lock() }
  func unlockItem() { lock.unlock() }
  func hold() -> Bool { reference.enter() }
  func letGo() { if reference.leave() { releaseContents() } }
  var isOpen: Bool { reference.isOpen }

  func mayJoin(_ loop: RunLoop, leaving former: inout RunLoop?) -> Bool {
    guard let home, home !== loop else { return true }
    former = home
    // A loop of the process that this one was forked from has nobody who could change what is in it, and its lock may
    // be held.
    guard !home.table.isOfParent else { return leaveHome { _ in } }
    return home.table.withLock { table in leaveHome { _ = table.removeCommon($0) } }
  }

  /// Lets a timer that is in no mode have no home, nor be among its common items.
  ///
  /// Under both locks, as the home's thread may be about to add it.
  private func leaveHome(_ removeCommon: (Timer) -> Void) -> Bool {
    guard slots.isEmpty else { return false }
    if isCommon { removeCommon(self) }
    isCommon = false
    setHome(nil)
    return true
  }

  func countsAsCommon(of loop: RunLoop) -> Bool { home === loop && !slots.isEmpty }

  func setCommon(_ isCommon: Bool, of loop: RunLoop) {
    setHome(loop)
    self.isCommon = isCommon
  }

  func modes(of loop: RunLoop) -> ShortList<ModeState> { home === loop ? slots.modes : ShortList() }
  func isIn(_ mode: ModeState, of loop: RunLoop) -> Bool { home === loop && slots[mode] != nil }

  func enter(_ mode: ModeState, of loop: RunLoop, _ table: inout ModeTable) { enter(mode, of: loop) }

  @inline(__always)
  func enter(_ mode: ModeState, of loop: RunLoop) {
    setHome(loop)
    slots.insert(mode, insertion: loop.nextInsertion())
    mode.insert(self)
  }

  @inline(__always)
  func leave(_ mode: ModeState, of loop: RunLoop) {
    mode.remove(self)
    slots.remove(mode)
    loop.forgetPlace(of: self)
  }
}

extension Timer: DeadlineHeapMember {
  @inline(__always)
  func setPlace(_ place: Int32, in mode: ObjectIdentifier, kind: DeadlineHeapKind) {
    slots.setPlace(place, in: mode, kind: kind)
  }

  func turn(in mode: ObjectIdentifier) -> UInt64 { slots[mode]?.insertion ?? 0 }
}

extension Timer: CustomDebugStringConvertible {
  /// The item's state, in the shape of Core Foundation's description.
  public var debugDescription: String {
    let (firing, deadline, tolerance, now) = guarded { loop in
      (isFiring, setTick, usableTolerance, (loop?.waiter ?? RunLoop.currentWaiter).now)
    }
    let ahead = deadline + (now.nanoseconds == .min ? 0 : -now.nanoseconds)
    let next = deadline == .never ? "never" : "\(Double(ahead.nanoseconds) / 1e9) @ \(deadline.nanoseconds)"
    return "<Timer \(addressDescription(self))>{valid = \(yesOrNo(isValid)), firing = \(yesOrNo(firing)), "
      + "interval = \(timeInterval), tolerance = \(Double(tolerance) / 1e9), next fire date = \(next), "
      + "\(callOutDescription(heldCode { code }))}"
  }
}
