import Synchronization

extension RunLoop {
  /// Fires the timers of the mode that are due now, in the order of their dates; false if none is.
  ///
  /// What is due is settled before the first call-out. A timer that an earlier one has removed, ended or moved to a later
  /// date, or that a nested run has fired, is passed over.
  func fireDueTimers(_ mode: ModeState) -> Bool {
    guard mode.mayHaveTimers.load(ordering: .relaxed) else { return false }
    let now = waiter.now
    let start = dueTimers.count
    let hasTolerance = table.withLock { _ in
      mode.timers.due.collect(dueAt: now, into: &dueTimers)
      return mode.timers.hasTolerance
    }
    guard dueTimers.count > start else { return false }
    if hasTolerance { countSavedWakeUps(dueTimers[start...]) }
    for index in start..<dueTimers.count {
      let timer = dueTimers[index].member
      guard beginFiring(timer, now: now) else { continue }
      trace(.callOut(.timer), mode)
      timer.callOut()
      trace(.callOutEnded(.timer), mode)
      endFiring(timer)
    }
    // One by one: the last reference to a timer may go here, and what that runs may run the loop.
    while dueTimers.count > start { _ = dueTimers.removeLast() }
    return true
  }

  private func beginFiring(_ timer: Timer, now: Tick) -> Bool {
    timer.lock.withLock {
      // One that was moved meanwhile may have come due, as the call-outs took their time.
      guard timer.isOpen, timer.loop === self, !timer.isFiring, timer.tick <= now || timer.tick <= waiter.now else {
        return false
      }
      timer.isFiring = true
      table.withLock { _ in
        for slot in 0..<timer.slots.end {
          if let mode = timer.slots[slot].mode { mode.timers.beginFiring(timer, slot: slot) }
        }
      }
      return true
    }
  }

  private func endFiring(_ timer: Timer) {
    if timer.interval > 0 {
      timer.endFiring(at: waiter.now, makingUpMissedTicks: sabotage.contains(.missedTicksMadeUp))?.post()
    } else {
      timer.invalidate()
      timer.lock.withLock { timer.isFiring = false }
    }
  }

  /// Counts the dates that one wake-up serves, and that without tolerances would each have had one of its own.
  private func countSavedWakeUps(_ due: ArraySlice<DeadlineHeap<Timer>.Due>) {
    guard lastSleepBegan != .never else { return }
    var dates = 0
    var last = lastSleepBegan
    for timer in due where timer.entry.tick > last {
      dates += 1
      last = timer.entry.tick
    }
    if dates > 1 { counters.savedWakeUps.wrappingAdd(dates - 1, ordering: .relaxed) }
  }
}

// What changes in a loop's timers from any thread. Under the timer's lock; true if the loop sleeps too long for the change.
extension RunLoop {
  /// The next number in the order of all insertions.
  ///
  /// Under the table's lock.
  func nextInsertion() -> UInt64 {
    lastInsertion += 1
    return lastInsertion
  }

  /// Changes a timer's date and gives it the place of the new one in each of its modes.
  ///
  /// While it is being called it has none but in its turn among those of the same date, which it takes up when its call has
  /// ended: `keepsTurn`.
  func rekey(_ timer: Timer, keepsTurn: Bool, after change: () -> Void) -> Bool {
    table.withLock { table in
      change()
      var rearms = false
      for slot in 0..<timer.slots.end {
        guard let mode = timer.slots[slot].mode else { continue }
        mode.timers.move(timer, slot: slot, insertion: keepsTurn ? nil : nextInsertion())
        if !timer.isFiring, table.sleepsTooLong(for: timer, in: mode) { rearms = true }
      }
      return rearms
    }
  }

  func setTolerance(of timer: Timer, to nanoseconds: Int64) -> Bool {
    table.withLock { table in
      let had = timer.usableTolerance > 0
      timer.storeTolerance(sabotage.contains(.toleranceIgnored) ? 0 : nanoseconds)
      let has = timer.usableTolerance > 0
      var rearms = false
      for slot in 0..<timer.slots.end {
        guard let mode = timer.slots[slot].mode else { continue }
        if had != has { mode.timers.countTolerant(has ? 1 : -1) }
        mode.timers.moveLatest(timer, slot: slot)
        if table.sleepsTooLong(for: timer, in: mode) { rearms = true }
      }
      return rearms
    }
  }
}
