// SPDX-License-Identifier: Apache-2.0

// A timer's date: the tick that the loop uses, and the same date by the wall clock.

extension Timer {
  /// The date until which this timer lets the loop sleep.
  @inline(__always)
  var latestTick: Tick { tick + usableTolerance }
  /// The date as it was set.
  var setTick: Tick { slots.rare?.setTick ?? tick }
  /// How late the loop may fire the timer, in nanoseconds.
  @inline(__always)
  var usableTolerance: Int64 { slots.rare?.tolerance ?? 0 }

  /// A new date for a timer.
  enum NewDate {
    case tick(Tick)
    /// A date by the wall clock, in seconds since 2001.
    case wall(Double)
    /// A number of nanoseconds from now, by the clock of the timer's home.
    case after(Int64)
  }

  @inline(__always)
  func move(to date: NewDate, from site: UInt64 = 0) {
    Origin.note(self, site: site)
    // The slow path is a separate function, so that the fast path retains no captures of its closure.
    if atHomeHere({ moveUnderLock(to: date, at: $0) }) ?? moveFromAfar(to: date) { holder?.post() }
  }

  @inline(never)
  private func moveFromAfar(to date: NewDate) -> Bool { guarded { moveUnderLock(to: date, at: $0) } }

  /// Sets the date of the timer; returns true if its loop sleeps too long for it.
  @inline(__always)
  private func moveUnderLock(to date: NewDate, at home: RunLoop?) -> Bool {
    guard reference.isOpen else { return false }
    let (tick, wallDate, read): (Tick, Double?, Tick?)
    switch date {
    case .tick(let date): (tick, wallDate, read) = (date, nil, nil)
    case .wall(let date):
      tick = Tick(wallDate: date, offset: (home?.waiter ?? RunLoop.currentWaiter).wallOffset)
      (wallDate, read) = (date, nil)
    case .after(let nanoseconds):
      let now = home?.tickNow ?? RunLoop.currentWaiter.now
      (tick, wallDate, read) = (now + nanoseconds, nil, now)
    }
    let now = read ?? home?.now(unlessAheadOf: tick) ?? RunLoop.currentNow(unlessAheadOf: tick)
    if isFiring { wasMoved = true }
    setDate(tick, past: now, wallDate: wallDate)
    return home?.rekey(self) ?? false
  }

  /// Stores a date; requires the guarding lock.
  @inline(__always)
  private func setDate(_ tick: Tick, past now: Tick, wallDate: Double?) {
    self.tick = max(tick, now)
    let setTick = tick < now ? tick : nil
    if let rare = slots.rare {
      rare.setTick = setTick
      rare.knownWallDate = wallDate
    } else if setTick != nil || wallDate != nil {
      let rare = slots.makeRare()
      rare.setTick = setTick
      rare.knownWallDate = wallDate
    }
  }

  /// The date by the wall clock, in seconds since 2001.
  ///
  /// A date that was set reads back unchanged. A date that was set in another way is computed when it is first read,
  /// and then kept until the timer gets a new one. Setting it converts it to a tick once: a later change of the wall
  /// clock does not move the timer. A timer whose date is not a number is never due. Can be used from any thread.
  package var wallDate: Double {
    get {
      guarded { home in
        if let known = slots.rare?.knownWallDate { return known }
        let date = setTick.wallDate(offset: (home?.waiter ?? RunLoop.currentWaiter).wallOffset)
        slots.makeRare().knownWallDate = date
        return date
      }
    }
    set { move(to: .wall(newValue)) }
  }

  func setTolerance(_ nanoseconds: Int64) {
    let rearms = guarded { home -> Bool in
      guard let home else {
        storeTolerance(nanoseconds)
        return false
      }
      return home.setTolerance(of: self, to: nanoseconds)
    }
    if rearms { holder?.post() }
  }

  /// Stores a tolerance; requires the guarding lock.
  func storeTolerance(_ nanoseconds: Int64) {
    let usable = max(0, interval == 0 ? nanoseconds : min(nanoseconds, interval / 2))
    if usable > 0 || slots.rare != nil { slots.makeRare().tolerance = usable }
  }

  /// Ends the firing of a repeating timer: keeps a date that was set during the call-out, or sets the next of its
  /// phase.
  ///
  /// An invalid timer keeps its date. The call-out may have moved the timer to another loop.
  func endFiring(at now: Tick) {
    let rearms = guarded { home in
      isFiring = false
      let keepsTurn = wasMoved
      if !wasMoved, reference.isOpen {
        setDate(tick.next(after: now, every: interval), past: .distantPast, wallDate: nil)
      }
      wasMoved = false
      return home?.takeBack(self, keepsTurn: keepsTurn) ?? false
    }
    if rearms { holder?.post() }
  }
}

// Foundation's initializers, whose dates are by the wall clock.
extension Timer {
  /// Makes a timer that is in no mode yet and first fires at a date of the wall clock.
  ///
  /// - Parameters:
  ///   - wallDate: Seconds since 2001.
  ///   - interval: Seconds between two dates; zero or less counts as 0.0001 s. Ignored by a timer that fires once.
  ///   - repeats: Whether it fires again after each interval.
  ///   - attachment: A value that is kept and released with the block.
  ///   - block: Called on the loop's thread with the timer.
  /// - Precondition: The interval of a repeating timer is a number.
  package convenience init(
    wallDate: Double, interval: Double, repeats: Bool, attachment: (any Sendable)?,
    block: @escaping @Sendable (Timer) -> Void
  ) {
    let seconds = repeats ? Timer.usableSeconds(interval) : 0
    self.init(
      tick: Tick(wallDate: wallDate, offset: RunLoop.currentWaiter.wallOffset), wallDate: wallDate,
      interval: Int64(saturatingSeconds: seconds), timeInterval: seconds, tolerance: 0, block: block)
    if let attachment { attach(attachment) }
  }

  /// Makes a timer that is in no mode yet and first fires after `timeInterval` seconds.
  ///
  /// The parameters are those of ``init(timeInterval:repeats:block:)`` and a value that is kept with the block.
  package convenience init(
    timeInterval: Double, repeats: Bool, attachment: (any Sendable)?, block: @escaping @Sendable (Timer) -> Void
  ) {
    let seconds = Timer.usableSeconds(timeInterval)
    let now = RunLoop.currentWaiter.now
    self.init(
      tick: now + Int64(saturatingSeconds: seconds), now: now,
      interval: repeats ? Int64(saturatingSeconds: seconds) : 0, timeInterval: repeats ? seconds : 0, tolerance: 0,
      block: block)
    if let attachment { attach(attachment) }
  }

  /// Converts an interval of Foundation's API to the one that is used.
  private static func usableSeconds(_ seconds: Double) -> Double {
    // Not a precondition, which prints no message in optimised code.
    guard !seconds.isNaN else { fatalError("a timer's interval of \(seconds) seconds is not a number") }
    return seconds > 0 ? max(seconds, 1e-6) : 0.0001
  }
}
