// A timer's date: its tick, by which the loop goes, and the same by the wall clock, for those who ask.

extension Timer {
  /// How long the loop may sleep for this timer.
  var latestTick: Tick { tick + usableTolerance }

  /// A date that a timer is given.
  enum NewDate {
    case tick(Tick)
    /// By the wall clock, in seconds since 2001.
    case wall(Double)
  }

  func move(to date: NewDate) {
    lock.lock()
    guard lease.isOpen else { return lock.unlock() }
    let loop = loop
    let waiter = loop?.waiter ?? RunLoop.currentWaiter
    let (tick, wallDate): (Tick, Double?) =
      switch date {
      case .tick(let tick): (tick, nil)
      case .wall(let date): (Tick(wallDate: date, offset: waiter.wallOffset), date)
      }
    let now = waiter.now
    let rearms = update(in: loop, keepsTurn: false) {
      setTick = tick
      self.tick = max(tick, now)
      if isFiring { wasMoved = true }
    }
    knownWallDate = wallDate
    lock.unlock()
    if rearms { loop?.post() }
  }

  /// The date by the wall clock, in seconds since 2001.
  ///
  /// It reads back as it was set, whatever it is. A date that the timer has come to otherwise is taken from the wall clock
  /// when somebody first asks, and then stays until the timer has another. Setting it turns it into a tick once: a change of
  /// the wall clock does not move the timer. What is not a number is never due. Any thread.
  package var wallDate: Double {
    get {
      lock.lock()
      defer { lock.unlock() }
      if let knownWallDate { return knownWallDate }
      let date = setTick.wallDate(offset: (loop?.waiter ?? RunLoop.currentWaiter).wallOffset)
      knownWallDate = date
      return date
    }
    set { move(to: .wall(newValue)) }
  }

  /// Changes the date and with it the places in a loop's heaps.
  ///
  /// Under the timer's lock; true if the loop sleeps too long for the new date.
  private func update(in loop: RunLoop?, keepsTurn: Bool, _ change: () -> Void) -> Bool {
    if let loop { return loop.rekey(self, keepsTurn: keepsTurn, after: change) }
    change()
    return false
  }

  func setTolerance(_ nanoseconds: Int64) {
    lock.lock()
    let loop = loop
    let rearms = loop?.setTolerance(of: self, to: nanoseconds) ?? false
    if loop == nil { storeTolerance(nanoseconds) }
    lock.unlock()
    if rearms { loop?.post() }
  }

  /// Ends the firing of a repeating timer: keeps a date that was set meanwhile, or goes on to the next of its phase.
  ///
  /// Gives the loop that must be woken for it: the call-out may have moved the timer to another one. One that was ended keeps
  /// its date.
  func endFiring(at now: Tick, makingUpMissedTicks: Bool) -> RunLoop? {
    lock.lock()
    defer { lock.unlock() }
    let rearms = update(in: loop, keepsTurn: wasMoved) {
      isFiring = false
      if !wasMoved, lease.isOpen {
        tick = makingUpMissedTicks ? tick + interval : tick.next(after: now, every: interval)
        setTick = tick
        knownWallDate = nil
      }
      wasMoved = false
    }
    return rearms ? loop : nil
  }
}

// Foundation's initializers, whose dates are of the wall clock.
extension Timer {
  /// Makes a timer that is in no mode yet and first fires when the wall clock says `wallDate`.
  ///
  /// - Parameters:
  ///   - wallDate: Seconds since 2001.
  ///   - interval: Seconds between two dates; zero or less counts as 0.0001 s. Of no meaning to a timer that fires once.
  ///   - repeats: Whether it fires again after each interval.
  ///   - attachment: What the timer keeps with its block.
  ///   - block: Called on the loop's thread with the timer.
  /// - Precondition: The interval of a repeating timer is a number.
  package convenience init(
    wallDate: Double, interval: Double, repeats: Bool, attachment: (any Sendable)?,
    block: @escaping @Sendable (Timer) -> Void
  ) {
    let seconds = repeats ? Timer.usableSeconds(interval) : 0
    self.init(
      tick: Tick(wallDate: wallDate, offset: RunLoop.currentWaiter.wallOffset), wallDate: wallDate,
      interval: Int64(saturatingSeconds: seconds), timeInterval: seconds, tolerance: 0, attachment: attachment,
      block: block)
  }

  /// Makes a timer that is in no mode yet and first fires after `timeInterval` seconds.
  ///
  /// The parameters are those of ``init(timeInterval:repeats:block:)``, and what the timer keeps with its block.
  package convenience init(
    timeInterval: Double, repeats: Bool, attachment: (any Sendable)?, block: @escaping @Sendable (Timer) -> Void
  ) {
    let seconds = Timer.usableSeconds(timeInterval)
    self.init(
      tick: RunLoop.currentWaiter.now + Int64(saturatingSeconds: seconds),
      interval: repeats ? Int64(saturatingSeconds: seconds) : 0, timeInterval: repeats ? seconds : 0, tolerance: 0,
      attachment: attachment, block: block)
  }

  /// The interval that an interval of Foundation's spelling means.
  private static func usableSeconds(_ seconds: Double) -> Double {
    precondition(!seconds.isNaN, "a timer's interval of \(seconds) seconds is not a number")
    return seconds > 0 ? max(seconds, 1e-6) : 0.0001
  }
}
