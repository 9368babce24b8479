// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

// Phase 11 of the pass when it serves timers.
extension RunLoop {
  /// Fires the mode's due timers in order of their dates, and returns `false` if none is due.
  ///
  /// The due timers are collected before the first call-out. A timer is skipped if an earlier one removes it,
  /// invalidates it or moves it to a later date, or if a nested run fires it. Timers that a guest's budget leaves over
  /// stay due.
  func fireDueTimers(_ mode: ModeState) -> Bool {
    guard mode.timerCount > 0 else { return false }
    let now = tickNow
    let start = dueTimers.count
    var index = table.withLock { _ -> Int? in
      mode.timers.collect(dueAt: now, into: &dueTimers)
      guard dueTimers.count > start else { return nil }
      if mode.timers.hasTolerance { countSavedWakeUps(dueTimers[start...]) }
      return beginFiring(from: start, now: now)
    }
    guard dueTimers.count > start else { return false }
    while let fired = index {
      // The list holds the timer during its call, so that it still contains the timer if the thread ends in the call.
      dueTimers[fired].isCalled = true
      if fired + 2 < dueTimers.count { dueTimers[fired + 2].prefetch() }
      let due = dueTimers[fired].tick
      dueTimers[fired].unmanaged?._withUnsafeGuaranteedRef { timer in
        if isTraced { noteLateness(of: timer, due: due) }
        calling(
          CRL_KIND_TIMER, mode,
          CallNote(
            hook: .timer, code: timer.heldCode { timer.code }, item: itemAddress(timer), tag: crl_origin_tag())
        ) { _ = timer.callOut() }
        endFiring(timer)
      }
      dueTimers[fired].take()?.release()
      guard fired + 1 < dueTimers.count, !isBudgetOver else { break }
      // A tool that attaches in the middle sees the remaining timers as separate call-outs.
      takeUpLevel()
      index = table.withLock { _ in beginFiring(from: fired + 1, now: now) }
    }
    releaseDueTimers(from: start)
    return true
  }

  /// Records by how much a timer fires later than its date plus its tolerance, while the loop is traced.
  @inline(never)
  private func noteLateness(of timer: Timer, due: Tick) {
    let tolerance = table.withLock { _ in timer.usableTolerance }
    let late = tickNow - (due + tolerance)
    crl_lateness_add(recorder, late)
    if late >= CRL_LATE { crl_late_note(recorder, late, timer.heldCode { timer.code }, 0) }
  }

  /// Empties the list of collected timers from an index on.
  ///
  /// Timers are removed one at a time: releasing the last reference to one may run code that runs the loop.
  func releaseDueTimers(from start: Int) {
    while dueTimers.count > start {
      var due = dueTimers.removeLast()
      due.take()?.release()
    }
  }

  /// Begins to fire the next of the collected timers that still has to fire, and returns its index or `nil`.
  ///
  /// Requires the table's lock, which guards the timers bound to this loop.
  private func beginFiring(from start: Int, now: Tick) -> Int? {
    (start..<dueTimers.count).first { index in
      dueTimers[index].unmanaged?._withUnsafeGuaranteedRef { beginFiring($0, now: now) } ?? false
    }
  }

  /// Begins to fire a timer, and returns `false` if it must not fire now.
  @inline(__always)
  private func beginFiring(_ timer: Timer, now: Tick) -> Bool {
    // A timer that was moved meanwhile may be due already because the call-outs took time.
    guard timer.isOpen, timer.isAt(self), !timer.slots.isEmpty, !timer.isFiring,
      timer.tick <= now || timer.tick <= tickNow
    else { return false }
    timer.isFiring = true
    timer.slots.forEachMode { $0.timers.beginFiring(timer) }
    return true
  }

  private func endFiring(_ timer: Timer) {
    if timer.interval > 0 {
      timer.endFiring(at: tickNow)
    } else {
      timer.endFiringForGood()
    }
  }

  /// Counts the dates served by one wake-up that would each have needed a wake-up without tolerances.
  private func countSavedWakeUps(_ due: ArraySlice<DeadlineHeap<Timer>.Due>) {
    guard lastSleepBegan != .never else { return }
    var dates = 0
    var last = lastSleepBegan
    for timer in due where timer.tick > last {
      dates += 1
      last = timer.tick
    }
    if dates > 1 { counters.savedWakeUps.wrappingAdd(dates - 1, ordering: .relaxed) }
  }
}

// Changes to a loop's timers. These require the table's lock, which guards the timers whose home is this loop.
extension RunLoop {
  /// Returns the next number in the order of all insertions.
  func nextInsertion() -> UInt64 {
    lastInsertion += 1
    return lastInsertion
  }

  /// Repositions a timer in each of its modes after its date changed, and returns whether the loop sleeps too long for
  /// it.
  ///
  /// A timer that is being called only gets a new turn among the timers of the same date; it is repositioned when the
  /// call has ended.
  @inline(__always)
  func rekey(_ timer: Timer) -> Bool {
    var rearms = false
    timer.slots.renew(turn: { nextInsertion() }) { mode, slot in
      guard !timer.isFiring else { return }
      mode.timers.move(timer, by: slot)
      if table.sleepsTooLong(for: timer, in: mode) { rearms = true }
    }
    return rearms
  }

  /// Puts a timer back into the heaps of its modes after its call, and returns whether the loop sleeps too long for it.
  ///
  /// The timer keeps the turn that it received during the call if `keepsTurn` is true; otherwise it receives a new one.
  func takeBack(_ timer: Timer, keepsTurn: Bool) -> Bool {
    var rearms = false
    if !keepsTurn { timer.slots.renew(turn: { nextInsertion() }) { _, _ in } }
    timer.slots.forEachMode { mode in
      mode.timers.endFiring(timer)
      if table.sleepsTooLong(for: timer, in: mode) { rearms = true }
    }
    return rearms
  }

  func setTolerance(of timer: Timer, to nanoseconds: Int64) -> Bool {
    let had = timer.usableTolerance > 0
    timer.storeTolerance(nanoseconds)
    let has = timer.usableTolerance > 0
    var rearms = false
    timer.slots.forEachMode { mode in
      if had != has { mode.timers.countTolerant(has ? 1 : -1) }
      mode.timers.moveLatest(timer)
      if table.sleepsTooLong(for: timer, in: mode) { rearms = true }
    }
    return rearms
  }

  func removeFromModes(_ timer: Timer) {
    while !timer.slots.isEmpty {
      timer.slots.first.withMode { mode in timer.leave(mode, of: self) }
    }
  }
}

// Fast paths, under one lock, for the loop's own thread and timers whose home is the loop. They return `nil` or
// `false` if they do not apply. The common pseudo-mode never exists as a mode, so it never takes these paths.
extension RunLoop {
  @inline(__always)
  func addHere(_ timer: Timer, _ name: Mode) -> Bool? {
    guard !AddedPlace.isWatched else { return nil }
    let wakes: Bool? =
      timer.atHomeHere { loop in
        guard loop === self, timer.isOpen, !table.underLock.isDead, let mode = table.underLock.madeMode(name) else {
          return nil
        }
        return mode._withUnsafeGuaranteedRef { mode in
          guard timer.slots[mode] == nil else { return false }
          timer.enter(mode, of: self)
          // The loop may be asleep even so: another loop sleeps for it, and this runs in one of that loop's call-outs.
          return table.sleepsTooLong(for: timer, in: mode)
        }
      } ?? nil
    guard let wakes else { return nil }
    if wakes { post() }
    return true
  }

  @inline(__always)
  func removeHere(_ timer: Timer, _ name: Mode) -> Bool {
    let isDone =
      timer.atHomeHere { loop in
        guard loop === self, timer.isOpen, let mode = table.underLock.madeMode(name) else { return false }
        mode._withUnsafeGuaranteedRef { mode in if timer.slots[mode] != nil { timer.leave(mode, of: self) } }
        return true
      } ?? false
    if isDone { endHostedWaitIfEmpty() }
    return isDone
  }
}
