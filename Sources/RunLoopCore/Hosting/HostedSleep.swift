// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A sleep that the loop has announced, and that another loop sleeps in its place.
///
/// Meanwhile the loop's thread runs the other loop. If a call-out of the other loop runs this one, the sleep is
/// suspended, and announced again when the nested run is over.
struct HostedSleep {
  let mode: ModeState
  let gate: any SleepGate
  let deadline: Tick
}

// The loop's thread.
extension RunLoop {
  /// Announces a sleep and leaves it to the other loop; returns false, awake, if there is a reason for a pass.
  func fallAsleep(_ mode: ModeState, at gate: any SleepGate) -> Bool {
    // The gate is closed first: whatever opens it from now on has a reason that no earlier look has seen.
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
        // A wake-up since then may have left nothing else to be seen.
        if awaken().isWoken { return false }
      case .until(let deadline, let set):
        gate.watch(set?.descriptor ?? bellToWatch(at: gate), until: deadline)
        // The look takes the bell's only notice from the set: a wake-up since the last look is in the word.
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

  /// Whether the loop was woken, without a lock, out of a sleep that another loop sleeps in its place.
  package var isRung: Bool { bell.isRung }

  /// Notes whether the other loop, which has a wake-up descriptor of its own, may sleep without looking at ``isRung``
  /// again.
  package func noteHost(sleeps: Bool) { bell.noteHost(sleeps: sleeps) }

  /// Closes a gate, whether it was opened or the loop was woken by its bell.
  func close(_ gate: any SleepGate) {
    gate.close()
    bell.silence()
  }

  /// The counter that wakes the loop, for a gate that watches nothing else in which the counter is.
  private func bellToWatch(at gate: any SleepGate) -> OwnedDescriptor? {
    gate.wakeNumber < 0 ? table.withLock { $0.bell.descriptor } : nil
  }

  /// Makes the counter that wakes the loop out of another loop's sleep without a lock.
  func makeBell() throws(SystemError) {
    _ = try table.withLock { table throws(SystemError) in try table.bell.counter() }
  }

  /// Asks the kernel what is ready in a set already.
  private func findsReady(_ set: PollSet?) -> Bool {
    guard let set else { return false }
    set.wait(0)
    hasFoundDescriptors = set.hasFound
    return set.hasWork
  }

  /// Ends a hosted sleep, and returns what the word said until then.
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

  /// Ends a hosted sleep while a run nested in it lasts, and returns it.
  func suspendHostedSleep() -> HostedSleep? {
    guard let sleep = hostedSleep else { return nil }
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
  }
}
