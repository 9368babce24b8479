// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

// Phase 9 of the pass: the wait.
extension RunLoop {
  /// Waits until something is ready, the loop is woken, or the run's time limit is reached.
  ///
  /// A pass that polls only checks for events and consumes the wake-ups that have arrived.
  func wait(_ mode: ModeState, polls: Bool) {
    waiting.store(true, ordering: .relaxed)
    lastSleepBegan = .never
    innermost.wakeCause = .unknown
    waitCount &+= 1
    // A busy loop prepares only in every sixteenth poll, which is enough for the other loop to get its turn.
    if !polls || waitCount & 15 == 0 { prepareForOtherLoop(mode) }
    let looks = _slowPath(isTraced) && !innermost.polls && mode.isWatching.load(ordering: .relaxed)
    let began = looks ? tickNow : .never
    if hostLink != nil, !innermost.isServedByHost {
      waitInHost(mode, polls: polls)
    } else if polls {
      lookAtDescriptors(mode)
    } else {
      sleep(mode)
    }
    if _slowPath(began != .never) { noteLook(begun: began) }
    word.apply(.endWait)
    waiting.store(false, ordering: .relaxed)
  }

  /// Sleeps until there is a reason for a pass.
  ///
  /// A post for another mode, a timer that was moved meanwhile, or an early return from the kernel is not a reason;
  /// the loop then sleeps again.
  private func sleep(_ mode: ModeState) {
    var isOver = false
    var hasWaited = false
    var mayHaveOther = false
    while !isOver {
      // Another thread may have created the epoll set together with the loop's bell, which posters read without a lock.
      let isWatching = mode.isWatching.load(ordering: .acquiring)
      let sleeper = waiter.sleeper(watching: isWatching)
      let looks = isOnSystemTime && looker.isDue(RunLoop.waiting)
      // After the sleep is announced, the next thread that posts may be the one that wakes the loop.
      forgetWaking()
      lastWake.forgetProcessor()
      let asleep = word.apply(.announceSleep(looks ? .looking : sleeper)).after
      // The cause of the wake-up is known only if the loop really slept and no event was found before.
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
    // If something kept the loop from waiting, poll the descriptors instead.
    if !hasWaited { lookAtDescriptors(mode) }
  }

  /// Polls if that was announced, then sleeps unless the loop was woken meanwhile.
  private func lookOrSleep(
    _ announced: WakeState, as sleeper: WakeState.Sleeper, until deadline: Tick, in set: PollSet?
  ) {
    let waiting = RunLoop.waiting
    guard isOnSystemTime, announced.sleeper == .looking || looker.measures(waiting) else {
      waiter.sleep(on: word, while: announced, until: deadline, in: set)
      if isOnSystemTime { looker.noteWaker(lastWake.waker.processor) }
      // On virtual time, another thread's work wakes the loop without a wait, so only the kernel knows what came first.
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
    /// There is work to do.
    case never
    /// The mode has begun or stopped watching descriptors, or something was posted, since the sleep was announced.
    case again
  }

  /// Makes the last check for work after the sleep was announced.
  ///
  /// - Parameter gate: The gate that another loop watches if it will wait on behalf of this one.
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
      // A poster that has already removed the sleeper from the word may not have found a bell with which to wake it.
      guard word.state == asleep else { return .again }
      table.sleepingMode = mode
      table.sleepDeadline = deadline
      table.waitingIn = mode.pollSet
      if let gate { table.waitingAt = gate }
      return .until(deadline, mode.pollSet)
    }
  }

  /// Whether a source or port is ready, or the run must end (requires the table's lock, and the arrivals to have been
  /// taken).
  func mustGoOn(_ mode: ModeState) -> Bool {
    hasHandOff(mode) || findSignalled(mode) || findReadyPort(mode) || isStopped(mode)
  }

  /// Polls the kernel once, without waiting, unless another class of ready events has its turn first.
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

  /// Whether unserved events of the set are known to be ready (requires the table's lock).
  func hasReady(_ set: PollSet, _ mode: ModeState) -> Bool { hasMainQueueWork(set, mode) || hasFoundDescriptors }

  /// Whether a wait has found work of the main dispatch queue that has not been done yet (requires the table's lock).
  func hasMainQueueWork(_ set: PollSet, _ mode: ModeState) -> Bool {
    guard set.isMainQueueReady, isServingMainQueue(mode) else { return false }
    // Another mode may have served the queue meanwhile.
    if !MainQueue.hasNotice { set.isMainQueueReady = false }
    return set.isMainQueueReady
  }
}
