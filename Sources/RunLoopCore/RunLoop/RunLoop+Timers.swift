// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

// Phase 11 of the pass, if it serves timers.
extension RunLoop {
  /// Fires the timers of the mode that are due now, in the order of their dates; returns false if none is due.
  ///
  /// The due timers are collected before the first call-out. A timer that an earlier one has removed, ended or moved to
  /// a later date, or that a nested run has fired, is skipped.
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
      // The list holds the timer until its call is over: if the thread ends in the call, the list shows it.
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
      guard fired + 1 < dueTimers.count else { break }
      // Many timers of one pass are no single call-out to a tool that has begun to look meanwhile.
      takeUpLevel()
      index = table.withLock { _ in beginFiring(from: fired + 1, now: now) }
    }
    releaseDueTimers(from: start)
    return true
  }

  /// Sums up by how much a timer fires after its date and tolerance, while the loop is watched.
  @inline(never)
  private func noteLateness(of timer: Timer, due: Tick) {
    let tolerance = table.withLock { _ in timer.usableTolerance }
    let late = tickNow - (due + tolerance)
    crl_lateness_add(recorder, late)
    if late >= CRL_LATE { crl_late_note(recorder, late, timer.heldCode { timer.code }) }
  }

  /// Empties the list of the collected timers from an index on.
  ///
  /// Removed one by one: this may release the last reference to a timer, and the code that this runs may run the loop.
  func releaseDueTimers(from start: Int) {
    while dueTimers.count > start {
      var due = dueTimers.removeLast()
      due.take()?.release()
    }
  }

  /// Begins to fire the first of the collected timers that is still to fire, and returns its index; nil if there is
  /// none.
  ///
  /// Called under the table's lock, which guards the timers that are bound to this loop.
  private func beginFiring(from start: Int, now: Tick) -> Int? {
    (start..<dueTimers.count).first { index in
      dueTimers[index].unmanaged?._withUnsafeGuaranteedRef { beginFiring($0, now: now) } ?? false
    }
  }

  /// Begins to fire a timer; returns false if it is not to fire any more.
  @inline(__always)
  private func beginFiring(_ timer: Timer, now: Tick) -> Bool {
    // A timer that was moved meanwhile may have come due, because the call-outs took time.
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

  /// Counts the dates that one wake-up serves, and that would each have had a wake-up of their own without tolerances.
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

// Changes to a loop's timers. Called under the table's lock, which guards the timers whose home this loop is.
extension RunLoop {
  /// The next number in the order of all insertions.
  func nextInsertion() -> UInt64 {
    lastInsertion += 1
    return lastInsertion
  }

  /// Assigns a timer whose date has changed a new turn and the place of its date in each of its modes; returns true if
  /// the loop sleeps too long for it.
  ///
  /// While the timer is being called, it has only its turn among the timers of the same date, and takes its place when
  /// the call has ended.
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

  /// Puts a timer that has been called back into the heaps of its modes, with the turn that it got meanwhile or a new
  /// one; returns true if the loop sleeps too long for it.
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

  /// Takes a timer out of all modes.
  func removeFromModes(_ timer: Timer) {
    while !timer.slots.isEmpty {
      timer.slots.first.withMode { mode in timer.leave(mode, of: self) }
    }
  }
}

// What the loop's own thread does with timers whose home the loop is, under one lock. Nil or false means that this is
// no such case. The common pseudo-mode is never made.
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
          // The loop may sleep even so: another loop sleeps for it, and this is in one of that loop's call-outs.
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
