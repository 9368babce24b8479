// SPDX-License-Identifier: Apache-2.0

// The wait of a pass (R2, 9 and 10), and the passing of time.

/// A sleep of the loop.
struct SleepState {
  let mode: Int
  /// M19: until when, as the loop saw it when it last looked; nil: without end.
  var deadline: Int?
  /// Whether the loop is to look for a reason not to sleep: before it sleeps, and when somebody asks.
  var looks = true
  var hasLooked = false
  /// M19: the cause of the post that woke the loop, or nil if no post has.
  var cause: WakeCause?
  /// M19: whether a source of the mode was signalled, or one came in that was, since the loop looked.
  var hasSignal = false
}

/// M19: what a poster has for a sleeping loop.
enum WakeCause {
  case unknown
  case block
  case source
}

extension ModelLoop {
  /// Waits, or only looks, and gives the one descriptor that is to be served (R2, 12).
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
      // M19: the loop counts for itself how long it may sleep.
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

  /// M19: what wakes the loop first leaves its cause.
  mutating func noteCause(_ cause: WakeCause) {
    if let sleep, sleep.hasLooked, sleep.cause == nil { self.sleep?.cause = cause }
  }

  /// M19: lets what has woken the loop begin before the timers; whether they are left to the next pass.
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

  /// Looks, if there is cause to look, for a reason not to sleep that no descriptor tells of.
  private mutating func findsReason(_ mode: Int) -> Bool {
    guard let current = sleep, current.looks else { return false }
    let first = firstTick(mode)
    sleep?.deadline = first
    sleep?.looks = false
    sleep?.hasLooked = true
    // M19: what is due is due, whatever became of the descriptor.
    if differs(.m19), let first, first <= now { return true }
    if differs(.m20), isStopped(mode) { return true }
    // M1: whatever the blocks, and the observers before the wait, have left to be done.
    if differs(.m1), isRunnable(mode) || isStopped(mode) { return true }
    // Core Foundation sleeps on top of what was posted while it sleeps (R54). That the mode has become empty is noticed
    // at the end of a pass, in both (R28).
    if current.hasLooked && differs(.m3) && hasBlock(mode) { return true }
    // The next one that wakes it is the first again.
    sleep?.cause = nil
    sleep?.hasSignal = false
    return false
  }

  /// R10, R11: the one descriptor that a wait reports.
  private mutating func takeReady(_ mode: Int) -> DescriptorSet.Descriptor? {
    let taken = takeFirstReady(mode)
    // M19: nothing that is ready waits for a pass of its own.
    if differs(.m19) { while takeFirstReady(mode) != nil {} }
    return taken
  }

  private mutating func takeFirstReady(_ mode: Int) -> DescriptorSet.Descriptor? {
    guard let first = firstReady(mode) else { return nil }
    modes[mode]?.descriptors.takeFirst()
    if first == .wakeUp { wakeUpIsReadable = false }
    return first
  }

  /// What ends the wait, if anything is ready.
  private mutating func firstReady(_ mode: Int) -> DescriptorSet.Descriptor? {
    expireTimers(before: now + 1)
    return modes[mode]?.descriptors.firstReady(wakeUpIsReadable: wakeUpIsReadable)
  }

  /// Does what another thread does until now.
  private mutating func interrupt() {
    while let next = interruptions.first, next.tick <= now {
      interruptions.removeFirst()
      performElsewhere(next.actions)
    }
  }

  /// Lets time pass in a sleep.
  ///
  /// What another thread does at that tick comes before the timers of that tick.
  private mutating func passTime(to tick: Int) {
    guard tick > now else { return }
    now = tick
    expireTimers(before: now)
  }

  /// Lets ticks pass, as work that takes so long.
  mutating func work(_ ticks: Int) {
    now += ticks
    expireTimers(before: now + 1)
  }

  private mutating func expireTimers(before tick: Int) {
    for mode in 0..<modes.end { modes[mode]?.descriptors.expire(before: tick) }
  }
}
