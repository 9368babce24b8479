// SPDX-License-Identifier: Apache-2.0

// The wait of a pass (R2, 9 and 10), and the advance of time.

/// A sleep of the loop.
struct SleepState {
  let mode: Int
  /// M19: the deadline at the loop's last look, or nil for none.
  var deadline: Int?
  /// Whether the loop must look for a reason not to sleep: before it sleeps, and when another thread requests it.
  var looks = true
  var hasLooked = false
  /// M19: the cause of the post that woke the loop, or nil if no post has.
  var cause: WakeCause?
  /// M19: whether a source of the mode was signalled, or a signalled one added, since the last look.
  var hasSignal = false
}

/// M19: the kinds of work that a post has for a sleeping loop.
enum WakeCause {
  case unknown
  case block
  case source
}

extension ModelLoop {
  /// Waits or polls, and returns the one descriptor to serve (R2, 12).
  mutating func wait(_ mode: Int, polls: Bool) -> DescriptorSet.Descriptor? {
    isWaiting = true
    innermost.wakeCause = .unknown
    if !polls { sleep(mode) }
    let served = takeReady(mode)
    innermost.listens = false
    isWaiting = false
    return served
  }

  private mutating func sleep(_ mode: Int) {
    sleep = SleepState(mode: mode)
    while firstReady(mode) == nil, !findsReason(mode) {
      var deadline = modes[mode]?.descriptors.deadline
      // M19: the loop has its own limit for the sleep.
      if differs(.m19), let own = sleep?.deadline { deadline = min(own, deadline ?? own) }
      if let next = interruptions.first, max(now, next.tick) <= deadline ?? .max {
        passTime(to: next.tick)
        interrupt()
      } else if let deadline {
        passTime(to: deadline)
        sleep?.looks = true
      } else {
        write(.asleepForEver)
        stop()
      }
    }
    innermost.wakeCause = sleep?.cause ?? .unknown
    sleep = nil
  }

  /// M19: records the cause of the first post that wakes the loop.
  mutating func noteCause(_ cause: WakeCause) {
    if let sleep, sleep.hasLooked, sleep.cause == nil { self.sleep?.cause = cause }
  }

  /// M19: lets the work that has woken the loop begin before the timers; returns whether these wait for the next pass.
  mutating func putsOffTimers(_ mode: Int) -> Bool {
    guard differs(.m19) else { return false }
    let cause = innermost.wakeCause
    innermost.wakeCause = .unknown
    let hasPutOff = innermost.hasPutOff
    innermost.hasPutOff = false
    switch cause {
    case .unknown: break
    case .block: performBlocks(mode)
    case .source where !hasPutOff && hasSignalledSource(mode): innermost.hasPutOff = true
    case .source: break
    }
    return innermost.hasPutOff
  }

  /// Looks, if requested, for a reason not to sleep that no descriptor reports.
  private mutating func findsReason(_ mode: Int) -> Bool {
    guard let current = sleep, current.looks else { return false }
    let first = firstTick(mode)
    sleep?.deadline = first
    sleep?.looks = false
    sleep?.hasLooked = true
    // M19: a due timer counts, whatever the state of the descriptor.
    if differs(.m19), let first, first <= now { return true }
    if differs(.m20), isStopped(mode) { return true }
    // M1: work that the blocks or the observers before the wait have left prevents a sleep.
    if differs(.m1), isRunnable(mode) || isStopped(mode) { return true }
    // Core Foundation ignores blocks posted while it sleeps (R54). Both loops notice an empty mode only at the end of
    // a pass (R28).
    if current.hasLooked && differs(.m3) && hasBlock(mode) { return true }
    // The next post that wakes it counts as the first again.
    sleep?.cause = nil
    sleep?.hasSignal = false
    return false
  }

  /// R10, R11: returns the one descriptor that a wait reports.
  private mutating func takeReady(_ mode: Int) -> DescriptorSet.Descriptor? {
    let taken = takeFirstReady(mode)
    // M19: no other ready descriptor needs another pass.
    if differs(.m19) { while takeFirstReady(mode) != nil {} }
    return taken
  }

  private mutating func takeFirstReady(_ mode: Int) -> DescriptorSet.Descriptor? {
    guard let first = firstReady(mode) else { return nil }
    modes[mode]?.descriptors.takeFirst()
    if first == .wakeUp { wakeUpIsReadable = false }
    return first
  }

  /// Returns a ready descriptor, which ends the wait.
  private mutating func firstReady(_ mode: Int) -> DescriptorSet.Descriptor? {
    expireTimers(before: now + 1)
    return modes[mode]?.descriptors.firstReady(wakeUpIsReadable: wakeUpIsReadable)
  }

  /// Performs the actions of another thread up to now.
  private mutating func interrupt() {
    while let next = interruptions.first, next.tick <= now {
      interruptions.removeFirst()
      performElsewhere(next.actions)
    }
  }

  /// Advances the time in a sleep, with another thread's actions before the timers of the same tick.
  private mutating func passTime(to tick: Int) {
    guard tick > now else { return }
    now = tick
    expireTimers(before: now)
  }

  /// Spends a number of ticks.
  mutating func work(_ ticks: Int) {
    now += ticks
    expireTimers(before: now + 1)
  }

  private mutating func expireTimers(before tick: Int) {
    for mode in 0..<modes.end { modes[mode]?.descriptors.expire(before: tick) }
  }
}
