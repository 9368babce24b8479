import CRunLoopSystem
import Synchronization

extension RunLoop {
  /// The passes of one run: the ten steps of the documents, in their order.
  func makePasses(_ mode: ModeState) -> RunResult {
    while true {
      beginPass()
      notify(.beforeTimers, mode)
      notify(.beforeSources, mode)
      performBlocks(mode)
      var handledSource = performSources(mode)
      if handledSource { performBlocks(mode) }

      if !isMainQueueReady(mode) {
        let polls = innermost.polls || handledSource || isRunnable(mode) || isEmpty(mode)
        if !polls { notify(.beforeWaiting, mode) }
        wait(mode, polls: polls)
        if !polls { notify(.afterWaiting, mode) }
      }

      if serveOneClass(mode) { handledSource = true }
      performBlocks(mode)

      if innermost.returnsAfterSource && handledSource { return .handledSource }
      if isTimeOver { return .timedOut }
      if consumeStop(mode) { return .stopped }
      if isEmpty(mode) { return .finished }
    }
  }
}

// What the pass asks and notes.
extension RunLoop {
  /// Makes wake-ups count for the coming wait, from now on; true if one has come since the last wait was over.
  @inline(__always)
  @discardableResult
  func beginPass() -> Bool {
    let afterLook = innermost.endsWaitLater
    innermost.endsWaitLater = false
    // Mostly there is nothing to change after a wait that only looked.
    if afterLook, word.state == .listening { return false }
    let before = word.apply(afterLook ? .beginPassAfterLook : .beginPass).before
    return before.isLate || (afterLook && before.isWoken)
  }

  /// Whether the mode has nothing that keeps it alive: no source, port or timer, no main queue, and no block that
  /// it could run.
  @inline(__always)
  func isEmpty(_ mode: ModeState) -> Bool {
    mode.itemCount.load(ordering: .relaxed) == 0 && !hasBlock(mode) && !isServingMainQueue(mode)
      && !isKeptAliveByHost(mode)
  }

  /// Whether the main dispatch queue keeps the mode alive, as it does on the main loop but for runs nested in one of the
  /// queue's own blocks.
  func isServingMainQueue(_ mode: ModeState) -> Bool {
    mode.servesMainQueue.load(ordering: .relaxed) && !isDrainingMainQueue && !sabotage.contains(.mainQueueIgnored)
  }

  /// Whether a pass of the mode would find something to run now: a block, or a signalled source.
  @inline(__always)
  func isRunnable(_ mode: ModeState) -> Bool {
    hasBlock(mode) || hasSignalledSource(mode)
  }

  @inline(__always)
  private var isTimeOver: Bool {
    innermost.polls || (innermost.deadline != .never && tickNow >= innermost.deadline)
  }

  /// Answers a stop of the innermost run, of the mode, or of every run.
  func consumeStop(_ mode: ModeState) -> Bool {
    if stopFlag.consume() || stopFlag.isEnding { return true }
    return mode.isStopped.load(ordering: .acquiring) && mode.isStopped.exchange(false, ordering: .acquiringAndReleasing)
  }
}

// Steps 7 and 8 of the pass: the sleep.
extension RunLoop {
  /// Waits until something is ready, somebody wakes the loop, or the run's time is over.
  ///
  /// A pass that polls only looks, and answers the wake-ups that have come.
  func wait(_ mode: ModeState, polls: Bool) {
    waiting.store(true, ordering: .relaxed)
    lastSleepBegan = .never
    var hasOnlyLooked = polls
    if hostLink != nil {
      waitInHost(mode, polls: polls)
    } else if polls {
      lookAtDescriptors(mode)
    } else if lookForReadiness(mode) {
      // What an earlier wait has found lies ready: no sleep need be announced.
      hasOnlyLooked = true
    } else {
      sleep(mode)
    }
    if hasOnlyLooked, !word.state.isWoken {
      // There is nothing to answer, and the beginning of the next pass makes up for the end of this wait.
      innermost.endsWaitLater = true
    } else {
      word.apply(.endWait)
    }
    waiting.store(false, ordering: .relaxed)
  }

  /// Sleeps until there is a reason for a pass.
  ///
  /// A post for another mode, a date that was moved meanwhile and a wait that the kernel ended early are none: then the loop
  /// sleeps on.
  private func sleep(_ mode: ModeState) {
    var isOver = false
    var hasWaited = false
    while !isOver {
      let isWatching = mode.isWatching.load(ordering: .relaxed)
      let asleep = word.apply(.announceSleep(waiter.sleeper(watching: isWatching))).after
      switch asleep.isWoken ? .never : lastLook(mode, asleep, isWatching: isWatching) {
      case .never: isOver = true
      case .again: break
      case .until(let deadline, let set):
        trace(.sleep(until: deadline), mode)
        hasWaited = true
        if deadline != .never, !isPunctual { becomePunctual() }
        waiter.sleep(on: word, while: asleep, until: deadline, in: set)
        if set != nil { table.withLock { $0.waitingIn = nil } }
      }
      isOver = word.apply(.awaken).before.isWoken || isOver
    }
    // Whatever kept the loop from waiting must not keep it from looking.
    if !hasWaited { lookAtDescriptors(mode) }
  }

  /// Lets the thread's sleeps end in time: before its first sleep until a date.
  @inline(never)
  private func becomePunctual() {
    isPunctual = true
    if isOnSystemTime { crl_use_least_timer_slack() }
  }

  enum Sleep {
    case until(Tick, PollSet?)
    /// Something is there to be done.
    case never
    /// The mode has come to watch descriptors, or to watch none, since the sleep was announced, or somebody has posted.
    case again
  }

  /// The last look for work, after the sleep was announced.
  ///
  /// - Parameters:
  ///   - gate: What another loop watches if it is to wait for this one.
  ///   - keptAlive: Whether the loop sleeps though nothing of its own keeps the mode alive.
  func lastLook(
    _ mode: ModeState, _ asleep: WakeState, isWatching: Bool, at gate: Gate? = nil, keptAlive: Bool = true
  ) -> Sleep {
    guard !hasBlock(mode, exactly: true), !hasDeferredWork(mode) else { return .never }
    return table.withLock { table in
      guard !mustGoOn(mode, keptAlive: keptAlive) else { return .never }
      guard (mode.pollSet != nil) == isWatching else { return .again }
      if let set = mode.pollSet {
        guard !hasReady(set, mode) else { return .never }
      }
      var deadline = min(innermost.deadline, mode.timers.wakeTick)
      if sabotage.contains(.sleepInSlices) { deadline = min(deadline, tickNow + 1_000_000_000) }
      if deadline != .never {
        let now = tickNow
        guard deadline > now else { return .never }
        lastSleepBegan = min(lastSleepBegan, now)
      }
      // A poster that has already taken the sleeper out of the word has found no set to wake it in.
      guard word.state == asleep else { return .again }
      table.sleepingMode = mode
      table.sleepDeadline = deadline
      table.waitingIn = mode.pollSet
      if let gate { table.waitingAt = gate }
      return .until(deadline, mode.pollSet)
    }
  }

  /// Whether a source or port is ready, the run is to end, or a host has nothing either that keeps an empty mode alive.
  ///
  /// A loop that waits by itself sleeps on in a mode that has become empty.
  ///
  /// Under the table's lock.
  func mustGoOn(_ mode: ModeState, keptAlive: Bool = true) -> Bool {
    findSignalled(mode) || findReadyPort(mode) || stopFlag.isSet || mode.isStopped.load(ordering: .relaxed)
      || (!keptAlive && mode.itemCount.load(ordering: .relaxed) == 0 && !isServingMainQueue(mode))
  }

  /// Whether an earlier wait has found a descriptor that is still to be served.
  @inline(__always)
  private func lookForReadiness(_ mode: ModeState) -> Bool {
    guard mode.isWatching.load(ordering: .relaxed) else { return false }
    // Mostly the last service has seen what comes next.
    if mode.readyAsOf.load(ordering: .relaxed) == descriptorServices { return true }
    return table.withLock { _ in mode.pollSet.map { hasReady($0, mode) } ?? false }
  }

  /// Asks the kernel once what is ready, without waiting.
  func lookAtDescriptors(_ mode: ModeState) {
    guard mode.isWatching.load(ordering: .relaxed) else { return }
    let set = table.withLock { _ -> PollSet? in
      guard let set = mode.pollSet, !hasReady(set, mode) else { return nil }
      return set
    }
    set?.wait(0)
  }

  /// Whether an earlier wait has found something that is still to be served; if not, the set is made ready for the
  /// next.
  ///
  /// Under the table's lock.
  func hasReady(_ set: PollSet, _ mode: ModeState) -> Bool {
    if set.isMainQueueReady, isServingMainQueue(mode) {
      // Another mode may have served it meanwhile.
      if MainQueue.hasNotice { return true }
      set.isMainQueueReady = false
    }
    return set.prepareToWait(servedBefore: descriptorServices)
  }
}
