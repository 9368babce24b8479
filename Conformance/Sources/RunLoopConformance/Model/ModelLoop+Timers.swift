// SPDX-License-Identifier: Apache-2.0

// Timers: their dates, their order, and their firing.

extension ModelLoop {
  /// R94: fires the timers that are due when the wait has ended.
  mutating func fireTimers(_ mode: Int) {
    let due = (modes[mode]?.timers ?? []).filter { !timers[$0].isFiring && timers[$0].tick <= now }
    var hasFired = false
    for timer in due where fire(timer, mode) { hasFired = true }
    if !hasFired { armAnew(mode) }
  }

  private mutating func fire(_ timer: Int, _ mode: Int) -> Bool {
    // R94: an earlier timer may have moved, removed or invalidated it, or a nested run fired it.
    guard timers[timer].isValid, timers[timer].tick <= now, !timers[timer].isFiring, isBound(.timer(timer)) else {
      return false
    }
    let firedTick = timers[timer].tick
    timers[timer].isFiring = true
    timers[timer].wasMoved = false
    armAnew(mode)
    // M20: the descriptors of the timer's other modes no longer report it.
    if differs(.m20) { for other in modesOf(timer) where other != mode { armAnew(other) } }
    callOut(.timer(timer))
    // R96: whatever date was set.
    if program.timers[timer].interval <= 0 { invalidate(.timer(timer)) }
    timers[timer].isFiring = false
    guard timers[timer].isValid else { return true }
    // R99. M30: any date that was set counts. In Core Foundation only a later one does.
    if differs(.m30) ? timers[timer].wasMoved : timers[timer].tick > firedTick {
      arm(mode)
      if differs(.m20) { for other in modesOf(timer) { arm(other) } }
    } else {
      // R97: the next date of its phase.
      var next = firedTick
      while next <= now { next += program.timers[timer].interval }
      move(timer, date: next, tick: next)
    }
    return true
  }

  /// R99: sets the date of a timer.
  mutating func setDate(_ timer: Int, _ date: Int) {
    guard timers[timer].isValid else { return }
    timers[timer].wasMoved = true
    move(timer, date: date, tick: Self.tick(of: date, now: now, switches))
    // R51. M25: the loop only sleeps until the new date.
    if isElsewhere, isBound(.timer(timer)), !differs(.m25) { wakeUp() }
  }

  /// R93: returns the tick at which a timer with a date is due; a past date counts as now.
  static func tick(of date: Int, now: Int, _ switches: Switches) -> Int {
    // M33: in Core Foundation a date more than sixteen years ahead is limited to that (R95).
    max(now, switches.contains(.m33) ? date : min(date, now + 504_911_232))
  }

  private mutating func move(_ timer: Int, date: Int, tick: Int) {
    timers[timer].date = date
    timers[timer].tick = tick
    for mode in modesOf(timer) {
      modes[mode]?.timers.removeAll { $0 == timer }
      insertByTick(timer, mode)
      // M19.
      if differs(.m19), !timers[timer].isFiring, sleepsTooLong(for: timer, mode) { poke() }
    }
  }

  /// R93: inserts a timer after all that are due at the same tick or earlier.
  mutating func insertByTick(_ timer: Int, _ mode: Int) {
    let others = modes[mode]?.timers ?? []
    let index = others.firstIndex { timers[$0].tick > timers[timer].tick } ?? others.endIndex
    modes[mode]?.timers.insert(timer, at: index)
    arm(mode)
  }

  private func modesOf(_ timer: Int) -> [Int] { modes.made.filter { modes[$0]?.timers.contains(timer) == true } }

  /// R99a: returns the tick of the first timer that is not being called.
  func firstTick(_ mode: Int) -> Int? {
    modes[mode]?.timers.first { !timers[$0].isFiring }.map { timers[$0].tick }
  }

  func sleepsTooLong(for timer: Int, _ mode: Int) -> Bool {
    guard let sleep, sleep.mode == mode else { return false }
    return timers[timer].tick < sleep.deadline ?? .max
  }

  /// Arms the timer descriptor of a mode for the first timer, unless it was armed for the same tick.
  mutating func arm(_ mode: Int) {
    let tick = firstTick(mode)
    if let tick, tick != modes[mode]?.armedTick {
      modes[mode]?.descriptors.setTimer(to: tick, now: now)
    } else if tick == nil, differs(.m20) {
      // M20: in Core Foundation it stays armed for a removed timer.
      modes[mode]?.descriptors.disarmTimer()
    }
    modes[mode]?.armedTick = tick
  }

  private mutating func armAnew(_ mode: Int) {
    modes[mode]?.armedTick = nil
    arm(mode)
  }

  /// R32: returns the date of the first timer, even if it is being called.
  func nextDate(_ name: ModeName) -> Int? {
    guard case .mode(let mode) = name, let first = modes[mode]?.timers.first else { return nil }
    return timers[first].date
  }

  func date(_ timer: Int) -> Int? {
    // R99c. M27.
    timers[timer].isValid || differs(.m27) ? timers[timer].date : nil
  }
}
