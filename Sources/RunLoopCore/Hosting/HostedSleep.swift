// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A sleep that the loop has announced and that another loop performs on its behalf.
///
/// Meanwhile, the loop's thread runs the other loop. If a call-out of the other loop runs this one, the sleep is
/// suspended until the nested run ends, and then announced again.
struct HostedSleep {
  let mode: ModeState
  let gate: any SleepGate
  let deadline: Tick
  /// Whether the sleep was suspended by one of the host's own items, which then continues.
  var isHostRunning = false
}

// These must be called on the loop's thread.
extension RunLoop {
  /// Announces a sleep and leaves it to the other loop, or returns `false` if there is a reason for a pass instead.
  func fallAsleep(_ mode: ModeState, at gate: any SleepGate) -> Bool {
    // The gate is closed first, so that whatever opens it from now on is a reason that no earlier check has seen.
    close(gate)
    bell.prepare(hostNumber: gate.wakeNumber)
    while true {
      let isWatching = mode.isWatching.load(ordering: .acquiring)
      forgetWaking()
      let asleep = word.apply(.announceSleep(.hosted)).after
      switch asleep.isWoken ? .never : lastLook(mode, asleep, isWatching: isWatching, at: gate) {
      case .never:
        awaken()
        return false
      case .again:
        // If the loop was woken since the announcement, the word may be the only trace of it.
        if awaken().isWoken { return false }
      case .until(let deadline, let set):
        gate.watch(set?.descriptor ?? bellToWatch(at: gate), until: deadline)
        // The poll consumes the bell's only notification from the set, but a wake-up since the last check is in the
        // word.
        guard !gate.isWatchedByEdge || (!findsReady(set) && word.state == asleep) else {
          awaken()
          return false
        }
        trace(.sleep(until: deadline), mode)
        noteSleep(until: deadline, isHosted: true)
        hostedSleep = HostedSleep(mode: mode, gate: gate, deadline: deadline)
        waiting.store(true, ordering: .relaxed)
        return true
      }
    }
  }

  /// Whether the loop was woken, without a lock, from a sleep that another loop performs for it.
  package var isRung: Bool { bell.isRung }

  /// Notes whether the other loop, which has its own wake-up descriptor, may sleep without checking ``isRung`` again.
  package func noteHost(sleeps: Bool) { bell.noteHost(sleeps: sleeps) }

  /// Closes a gate, whether it was opened or the loop was woken through its bell.
  func close(_ gate: any SleepGate) {
    gate.close()
    bell.silence()
  }

  /// The loop's wake-up counter, if the gate needs it because it watches nothing else that contains it.
  private func bellToWatch(at gate: any SleepGate) -> OwnedDescriptor? {
    gate.wakeNumber < 0 ? table.withLock { $0.bell.descriptor } : nil
  }

  /// Creates the counter that wakes the loop from a hosted sleep without a lock.
  func makeBell() throws(SystemError) {
    _ = try table.withLock { table throws(SystemError) in try table.bell.counter() }
  }

  /// Polls a set for events that are already ready.
  private func findsReady(_ set: PollSet?) -> Bool {
    guard let set else { return false }
    set.wait(0)
    hasFoundDescriptors = set.hasFound
    return set.hasWork
  }

  /// Ends a hosted sleep, and returns the previous state of the word.
  @discardableResult
  func awaken() -> WakeState {
    if hostedSleep != nil { noteAwake() }
    hostedSleep = nil
    waiting.store(false, ordering: .relaxed)
    table.withLock { table in
      table.waitingIn = nil
      table.waitingAt = nil
    }
    return word.apply(.awaken).before
  }

  /// Suspends a hosted sleep for the duration of a nested run, and returns it.
  func suspendHostedSleep() -> HostedSleep? {
    guard var sleep = hostedSleep else { return nil }
    sleep.isHostRunning = isHostRunning
    awaken()
    // While the loop runs by itself, the other loop has no reason to call it.
    sleep.gate.watch(nil, until: .never)
    close(sleep.gate)
    return sleep
  }

  /// Announces a suspended sleep again, or opens its gate if there is a reason not to sleep.
  func resume(_ sleep: HostedSleep) {
    // A host that has ended meanwhile must return.
    guard !sleep.gate.isRetired else { return sleep.gate.open() }
    if !fallAsleep(sleep.mode, at: sleep.gate) { sleep.gate.open() }
    if sleep.isHostRunning { noteHostRuns() }
  }
}
