import Synchronization

extension RunLoop {
  /// The passes of one run: the ten steps of the documents, in their order.
  func makePasses(_ mode: ModeState) -> RunResult {
    while true {
      word.apply(.beginPass)
      notify(.beforeTimers, mode)
      notify(.beforeSources, mode)
      performBlocks(mode)
      var handledSource = performSources(mode)
      if handledSource { performBlocks(mode) }

      let polls = innermost.polls || handledSource || isRunnable(mode) || isEmpty(mode)
      if !polls { notify(.beforeWaiting, mode) }
      wait(mode, polls: polls)
      if !polls { notify(.afterWaiting, mode) }

      if serveOneClass(mode) { handledSource = true }
      performBlocks(mode)

      if innermost.returnsAfterSource && handledSource { return .handledSource }
      if isTimeOver { return .timedOut }
      if consumeStop(mode) { return .stopped }
      if isEmpty(mode) { return .finished }
    }
  }
}

// What the pass asks.
extension RunLoop {
  /// Whether the mode has nothing that keeps it alive: no source, port or timer, and no block that it could run.
  @inline(__always)
  func isEmpty(_ mode: ModeState) -> Bool {
    mode.itemCount.load(ordering: .relaxed) == 0 && !hasBlock(mode)
  }

  /// Whether a pass of the mode would find something to run now: a block, or a signalled source.
  @inline(__always)
  func isRunnable(_ mode: ModeState) -> Bool {
    hasBlock(mode) || hasSignalledSource(mode)
  }

  @inline(__always)
  private var isTimeOver: Bool {
    innermost.polls || (innermost.deadline != .never && waiter.now >= innermost.deadline)
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
  /// A pass that polls only answers the wake-ups that have come.
  func wait(_ mode: ModeState, polls: Bool) {
    waiting.store(true, ordering: .relaxed)
    lastSleepBegan = .never
    if !polls { sleep(mode) }
    word.apply(.endWait)
    waiting.store(false, ordering: .relaxed)
  }

  /// Sleeps until there is a reason for a pass.
  ///
  /// A post for another mode, a date that was moved meanwhile and a wait that the kernel ended early are none: then the loop
  /// sleeps on.
  private func sleep(_ mode: ModeState) {
    var isOver = false
    while !isOver {
      let asleep = word.apply(.announceSleep(waiter.sleeper)).after
      if !asleep.isWoken, let deadline = sleepDeadline(mode) {
        trace(.sleep(until: deadline), mode)
        waiter.sleep(on: word, while: asleep, until: deadline)
      } else {
        isOver = true
      }
      isOver = word.apply(.awaken).before.isWoken || isOver
    }
  }

  /// Until when the loop may sleep, or nil if it must not: the last look, after the sleep was announced.
  private func sleepDeadline(_ mode: ModeState) -> Tick? {
    guard !hasBlock(mode, exactly: true) else { return nil }
    return table.withLock { table in
      purgeSignalled(mode)
      purgeReadyPorts(mode)
      guard mode.signalled.isEmpty, mode.readyPorts.isEmpty, !stopFlag.isSet,
        !mode.isStopped.load(ordering: .relaxed), mode.itemCount.load(ordering: .relaxed) > 0
      else { return nil }
      var deadline = min(innermost.deadline, mode.timers.wakeTick)
      if sabotage.contains(.sleepInSlices) { deadline = min(deadline, waiter.now + 1_000_000_000) }
      if deadline != .never {
        let now = waiter.now
        guard deadline > now else { return nil }
        lastSleepBegan = min(lastSleepBegan, now)
      }
      table.sleepingMode = mode
      table.sleepDeadline = deadline
      return deadline
    }
  }
}
