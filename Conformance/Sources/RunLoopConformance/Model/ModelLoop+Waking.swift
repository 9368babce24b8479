// SPDX-License-Identifier: Apache-2.0

// Wake-ups and stops, and the runs to which they belong.

extension ModelLoop {
  mutating func beginRun(_ run: RunState) {
    var run = run
    // M2: a wake-up for the run around this one is kept for it. In Core Foundation this run consumes it (R49).
    if differs(.m2), !runs.isEmpty, wakeUpIsReadable {
      run.keepsWakeUp = true
      wakeUpIsReadable = false
    }
    runs.append(run)
  }

  mutating func endRun() {
    let ended = runs.removeLast()
    let isHeard = runs.last?.listens == true
    var isUnanswered = ended.hasLateWakeUp
    // M20: a wake-up ends with the run that it was for. In Core Foundation the descriptor stays readable (R37).
    if differs(.m20), wakeUpIsReadable, !isHeard {
      wakeUpIsReadable = false
      isUnanswered = true
    }
    // M26: a wake-up that was not handled is for the run around it. In Core Foundation it is forgotten (R47).
    if differs(.m26), isUnanswered { wakeUp() }
    if ended.keepsWakeUp { write() }
  }

  /// Begins a pass (R2, 1).
  mutating func beginListening() {
    innermost.listens = true
    innermost.hasLateWakeUp = false
  }

  mutating func wakeUp() {
    // R46: outside every run a wake-up is forgotten.
    guard let run = runs.last else { return }
    // R47, R48.
    if run.listens { write() } else { innermost.hasLateWakeUp = true }
  }

  /// Makes the wake-up descriptor readable, for every mode.
  private mutating func write() {
    noteCause(sleep?.hasSignal == true ? .source : .unknown)
    wakeUpIsReadable = true
    for mode in 0..<modes.end { modes[mode]?.descriptors.note(.wakeUp) }
  }

  /// Makes a sleeping loop check again whether to continue sleeping.
  mutating func poke(_ cause: WakeCause = .unknown) {
    noteCause(cause)
    sleep?.looks = true
  }

  mutating func stop() {
    // R34: outside every run a stop is forgotten.
    guard !runs.isEmpty else { return }
    // R35.
    innermost.isStopped = true
    wakeForStop()
  }

  /// R42: stops a mode, even before it runs.
  mutating func stopMode(_ mode: Int) {
    makeMode(mode)
    modes[mode]?.isStopped = true
    wakeForStop()
  }

  /// R39: a stop wakes the loop.
  private mutating func wakeForStop() {
    // M20: it makes the loop look, but leaves no wake-up behind.
    if differs(.m20) { poke() } else { wakeUp() }
  }

  /// R6, R41: consumes a stop, that of the run before that of the mode.
  mutating func answersStop(_ mode: Int) -> Bool {
    if innermost.isStopped {
      innermost.isStopped = false
      return true
    }
    let isStopped = modes[mode]?.isStopped == true
    modes[mode]?.isStopped = false
    return isStopped
  }

  func isStopped(_ mode: Int) -> Bool { innermost.isStopped || modes[mode]?.isStopped == true }
}
