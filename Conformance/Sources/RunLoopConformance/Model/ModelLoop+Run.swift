// SPDX-License-Identifier: Apache-2.0

// One run, whose passes have the steps of R2.

extension ModelLoop {
  mutating func run(_ name: ModeName, _ limit: Limit, returnsAfterSource: Bool) -> RunOutcome {
    // R16, R24: the common pseudo-mode, unknown modes and empty ones are not run.
    guard case .mode(let mode) = name, modes[mode] != nil, !isEmpty(mode) else { return .finished }
    // R12, R13.
    let polls = limit == .poll || limit == .overdue
    beginRun(RunState(mode: mode, polls: polls, returnsAfterSource: returnsAfterSource))
    notify(.entry, mode)
    // R37: a stop in an entry observer ends the run without a pass.
    let outcome = answersStop(mode) ? .stopped : makePasses(mode)
    notify(.exit, mode)
    endRun()
    return outcome
  }

  private mutating func makePasses(_ mode: Int) -> RunOutcome {
    while true {
      beginListening()
      notify(.beforeTimers, mode)
      notify(.beforeSources, mode)
      performBlocks(mode)
      let handledSource = performSources(mode)
      if handledSource { performBlocks(mode) }

      // R3.
      let polls = handledSource || innermost.polls
      if !polls { notify(.beforeWaiting, mode) }
      let served = wait(mode, polls: polls)
      if !polls { notify(.afterWaiting, mode) }

      // R5. M19: timers that are due fire, whatever has ended the wait.
      if !putsOffTimers(mode), served == .timer || differs(.m19) { fireTimers(mode) }
      performBlocks(mode)

      // R6, R7, R12.
      if handledSource && innermost.returnsAfterSource { return .handledSource }
      if innermost.polls { return .timedOut }
      if answersStop(mode) { return .stopped }
      if isEmpty(mode) { return .finished }
    }
  }

  var innermost: RunState {
    get { runs[runs.endIndex - 1] }
    set { runs[runs.endIndex - 1] = newValue }
  }

  /// R25: whether nothing is left that could happen in the mode, without the blocks of a pass (R59).
  func isEmpty(_ mode: Int) -> Bool { holdsNoItem(mode) && !hasBlock(mode) }

  /// M1: whether the mode has something to run now.
  func isRunnable(_ mode: Int) -> Bool {
    hasBlock(mode) || hasSignalledSource(mode)
  }

  func hasSignalledSource(_ mode: Int) -> Bool {
    modes[mode]?.sources.contains { sources[$0].signal != nil } == true
  }
}
