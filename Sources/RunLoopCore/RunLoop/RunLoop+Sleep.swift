// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

// Phase 9 of the pass: the wait.
extension RunLoop {
  /// Waits until something is ready, the loop is woken, or the run's time is over.
  ///
  /// A pass that polls only looks, and answers the wake-ups that have arrived.
  func wait(_ mode: ModeState, polls: Bool) {
    waiting.store(true, ordering: .relaxed)
    lastSleepBegan = .never
    innermost.wakeCause = .unknown
    waitCount &+= 1
    // A look of a loop that is busy asks less often: the other loop then has its turn after some passes.
    if !polls || waitCount & 15 == 0 { prepareForOtherLoop(mode) }
    if hostLink != nil, !innermost.isServedByHost {
      waitInHost(mode, polls: polls)
    } else if polls {
      lookAtDescriptors(mode)
    } else {
      sleep(mode)
    }
    word.apply(.endWait)
    waiting.store(false, ordering: .relaxed)
  }

  /// Sleeps until there is a reason for a pass.
  ///
  /// A post for another mode, a date that was moved meanwhile and a wait that the kernel ended early are no reasons:
  /// then the loop sleeps on.
  private func sleep(_ mode: ModeState) {
    var isOver = false
    var hasWaited = false
    var mayHaveOther = false
    while !isOver {
      // Another thread may have made the set, and the loop's bell with it, which a poster finds without a lock.
      let isWatching = mode.isWatching.load(ordering: .acquiring)
      let sleeper = waiter.sleeper(watching: isWatching)
      let looks = isOnSystemTime && looker.isDue(RunLoop.waiting)
      // The next thread that sees the announcement may be the one that wakes.
      forgetWaking()
      lastWake.forgetProcessor()
      let asleep = word.apply(.announceSleep(looks ? .looking : sleeper)).after
      // Unless the loop was asleep, and nothing else came first, it is not known what came first.
      var knowsCause = false
      switch asleep.isWoken ? .never : lastLook(mode, asleep, isWatching: isWatching) {
      case .never: isOver = true
      case .again: break
      case .until(let deadline, let set):
        trace(.sleep(until: deadline), mode)
        hasWaited = true
        if deadline != .never, slack.load(ordering: .relaxed) != appliedSlack { applySlack() }
        noteSleep(until: deadline)
        lookOrSleep(asleep, as: sleeper, until: deadline, in: set)
        noteAwake(by: set?.firstFound ?? -1)
        knowsCause = true
        if let set {
          hasFoundDescriptors = set.hasFound
          knowsCause = !set.beganWithEvent
          table.withLock { $0.waitingIn = nil }
          mayHaveOther = set.takeOtherLoop()
        }
      }
      let before = word.apply(.awaken).before
      if knowsCause { innermost.wakeCause = before.cause }
      isOver = before.isWoken || hasFoundDescriptors || isOver
      if mayHaveOther, !isOver { isOver = isDueInOtherLoop(mode) }
    }
    // If something kept the loop from waiting, it still looks.
    if !hasWaited { lookAtDescriptors(mode) }
  }

  /// Looks, if a look was announced, and sleeps unless the loop was woken meanwhile.
  private func lookOrSleep(
    _ announced: WakeState, as sleeper: WakeState.Sleeper, until deadline: Tick, in set: PollSet?
  ) {
    let waiting = RunLoop.waiting
    guard isOnSystemTime, announced.sleeper == .looking || looker.measures(waiting) else {
      waiter.sleep(on: word, while: announced, until: deadline, in: set)
      if isOnSystemTime { looker.noteWaker(lastWake.waker.processor) }
      // On virtual time another thread's work wakes the loop without a wait: only the kernel knows what came first.
      if !isOnSystemTime, let set, !set.hasWork { set.wait(0) }
      return
    }
    let began = tickNow
    var asleep = announced
    if announced.sleeper == .looking {
      let outcome = looker.look(
        from: began, until: deadline, limit: waiting.limit, isOver: { word.state != announced },
        poll: { set?.poll() ?? false }, willLook: { counters.looks.wrappingAdd(1, ordering: .relaxed) })
      if outcome == .found { return }
      asleep = word.apply(.fallAsleep(sleeper)).after
      guard asleep.sleeper == sleeper else { return }
    }
    waiter.sleep(on: word, while: asleep, until: deadline, in: set)
    looker.noteSleep(from: began, endedBy: lastWake.waker, isEvent: set?.hasFound ?? false, limit: waiting.limit)
  }

  enum Sleep {
    case until(Tick, PollSet?)
    /// There is something to do.
    case never
    /// Since the sleep was announced, the mode has begun or stopped watching descriptors, or something was posted.
    case again
  }

  /// The last look for work, after the sleep was announced.
  ///
  /// - Parameter gate: The gate that another loop watches if it is to wait for this one.
  func lastLook(
    _ mode: ModeState, _ asleep: WakeState, isWatching: Bool, at gate: (any SleepGate)? = nil
  ) -> Sleep {
    takeArrivals(exactly: true)
    guard !hasBlock(mode), !hasDeferredWork(mode) else { return .never }
    return table.withLock { table in
      guard !mustGoOn(mode) else { return .never }
      guard (mode.pollSet != nil) == isWatching else { return .again }
      if let set = mode.pollSet {
        guard !hasReady(set, mode) else { return .never }
        set.prepareToWait(servingMainQueue: isServingMainQueue(mode))
      }
      let deadline = min(innermost.deadline, mode.timers.wakeTick)
      if deadline != .never {
        let now = tickNow
        guard deadline > now else { return .never }
        lastSleepBegan = min(lastSleepBegan, now)
      }
      // A poster that has already taken the sleeper out of the word need not have found a bell that wakes it.
      guard word.state == asleep else { return .again }
      table.sleepingMode = mode
      table.sleepDeadline = deadline
      table.waitingIn = mode.pollSet
      if let gate { table.waitingAt = gate }
      return .until(deadline, mode.pollSet)
    }
  }

  /// Whether a source or port is ready, or the run is to end; called under the table's lock, after the arrivals
  /// were taken.
  func mustGoOn(_ mode: ModeState) -> Bool {
    hasHandOff(mode) || findSignalled(mode) || findReadyPort(mode) || isStopped(mode)
  }

  /// Asks the kernel once what is ready, without waiting, unless another class of ready things has its turn first.
  func lookAtDescriptors(_ mode: ModeState) {
    guard mode.isWatching.load(ordering: .relaxed), !hasFoundDescriptors else { return }
    let set = table.withLock { _ -> PollSet? in
      guard let set = mode.pollSet, !servesOthersFirst(mode, set) else { return nil }
      set.prepareToWait(servingMainQueue: isServingMainQueue(mode))
      return set
    }
    set?.wait(0)
    hasFoundDescriptors = set?.hasFound ?? false
  }

  /// Whether something of the set is known to be ready and not yet served; called under the table's lock.
  func hasReady(_ set: PollSet, _ mode: ModeState) -> Bool { hasMainQueueWork(set, mode) || hasFoundDescriptors }

  /// Whether a wait has found work of the main dispatch queue that is still to be done; called under the table's lock.
  func hasMainQueueWork(_ set: PollSet, _ mode: ModeState) -> Bool {
    guard set.isMainQueueReady, isServingMainQueue(mode) else { return false }
    // Another mode may have served it meanwhile.
    if !MainQueue.hasNotice { set.isMainQueueReady = false }
    return set.isMainQueueReady
  }
}
