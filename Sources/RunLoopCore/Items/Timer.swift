// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

/// A closure that a loop calls at a date, once or repeatedly.
///
/// Dates are by the monotonic clock: a change of the wall clock does not move them. A repeating timer keeps its phase:
/// when the loop is late, missed dates are skipped. A timer is bound to one loop at a time, may be in any number of its
/// modes, and keeps the loop alive in each of them. It does not fire within its own call-out.
///
/// The class is final. With RunLoopKit, a loop also takes a subclass of `Foundation.Timer`.
///
/// The corresponding Core Foundation type is `CFRunLoopTimer`.
public final class Timer: @unchecked Sendable {
  // Sendable: Timer+Home.swift describes the lock that guards the variables; the reference guards the body and the
  // attachment.

  let lock = Lock()
  /// Its mark is set once a one-shot timer has been called.
  let reference = HandlerReference()
  /// The address of the loop that the timer is bound to, or was bound to last; zero for none.
  ///
  /// It is changed while both the timer's lock and the loop's table lock are held.
  ///
  /// Relaxed where it is read under both of these locks, and in `deinit`, when no other thread has the timer.
  let homeAddress: Atomic<UInt>
  /// The nanoseconds between two dates; zero for a timer that fires once.
  let interval: Int64
  @exclusivity(unchecked) var slots = TimerSlots()
  /// The date at which the timer is due; a date in the past is stored as the time when it was set.
  @exclusivity(unchecked) var tick: Tick
  private var hasAttachment = false
  @exclusivity(unchecked) var isCommon = false
  /// Whether the loop is calling the timer, which is in no heap meanwhile.
  @exclusivity(unchecked) var isFiring = false
  /// Whether the timer was moved during its call-out.
  @exclusivity(unchecked) var wasMoved = false
  @exclusivity(unchecked) private var body: Body?

  private struct Call {
    let body: @Sendable (Timer) -> Void
  }

  /// Noncopyable: a call needs no reference of its own to the closure, because the handler reference keeps it alive.
  private struct Body: ~Copyable {
    let call: Call
  }

  /// The address of the user's function; used on the loop's thread just before the call.
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
    // Most timers are added to the loop of the thread that makes them. The timer holds a reference to that loop until
    // it is added to another loop or released.
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
  ///   - deadline: When the timer first fires. With a date in the past it fires as soon as its loop runs.
  ///   - interval: The time between two dates. With nil, zero or less the timer fires once. Less than a microsecond
  ///     counts as one.
  ///   - tolerance: How much later than its date the timer may fire, so that several timers can share one wake-up. Less
  ///     than zero counts as zero; a repeating timer uses at most half its interval.
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

  /// The nanoseconds between two dates; zero for a timer that fires once.
  static func usableInterval(_ interval: Duration?) -> Int64 {
    guard let interval, interval > .zero else { return 0 }
    return max(Int64(saturating: interval), 1000)
  }
}

extension Timer {
  /// The date at which the timer next fires; in its own call-out, the date for which it fires.
  ///
  /// A date reads back as it was set, even one in the past, which makes the timer due at once. Setting a date puts the
  /// timer behind all others with the same date, takes effect on a sleeping loop at once, and moves the phase of a
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
  /// Reading it returns the tolerance that is used: a negative value or one that is not a number counts as zero, and a
  /// repeating timer uses at most half its interval. Firing late does not move the phase. Can be used from any thread.
  /// The corresponding Core Foundation functions are `CFRunLoopTimerGetTolerance` and `CFRunLoopTimerSetTolerance`.
  public var tolerance: Double {
    get { Double(guarded { _ in usableTolerance }) / 1e9 }
    set { setTolerance(newValue.isNaN ? 0 : Int64(saturatingSeconds: newValue)) }
  }

  /// The interval in seconds, as it was given; zero for a timer that fires once.
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
  /// The dates of a repeating timer do not change. A timer that fires once is invalidated when its block has returned.
  /// Its block is called only once: if the loop or another thread has already called it, this has no effect, as with an
  /// invalid timer. Can be called from any thread.
  ///
  /// The corresponding Foundation method is `fire()`.
  public func fire() {  // To override it, subclass Foundation.Timer: this class is final.
    if callOut(), interval == 0 { invalidate() }
  }

  /// Ends the timer permanently: it leaves all modes and does not fire again.
  ///
  /// The block is released at once, or, if it is being called, when it returns. Calling this again has no effect. Can
  /// be called from any thread. The corresponding Core Foundation function is `CFRunLoopTimerInvalidate`.
  public func invalidate() {  // To override it, subclass Foundation.Timer: this class is final.
    let closing = reference.close()
    guard closing != .already else { return }
    // A thread that adds the timer from now on finds it closed under the lock that is taken here.
    if !leaveHomeHere() { holder?.expel(self) }
    if closing == .release { releaseContents() }
  }
}

extension Timer {
  /// The attached value, or nil once the timer has ended.
  ///
  /// Can be used from any thread.
  package var attachment: (any Sendable)? {
    guard hasAttachment, hold() else { return nil }
    defer { letGo() }
    return guarded { _ in slots.rare?.attachment }
  }

  /// Attaches a value to a timer that no other thread can use yet.
  func attach(_ value: any Sendable) {
    slots.makeRare().attachment = value
    hasAttachment = true
  }

  /// Calls the block and returns true, unless the timer is invalid or a one-shot timer that has been called.
  @discardableResult
  func callOut() -> Bool {
    // The mark stays set, so that no other thread calls the block between this call and the timer's end.
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
    // No thread can change a loop of the parent process after a fork, and its lock may be held forever.
    guard !home.table.isOfParent else { return leaveHome { _ in } }
    return home.table.withLock { table in leaveHome { _ = table.removeCommon($0) } }
  }

  /// Clears the home of the timer and removes the timer from the home's common items; returns false without doing so if
  /// the timer is still in a mode.
  ///
  /// Requires both locks, because the home's thread may be about to add the timer.
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
