// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The state machine that decides when a pipeline commits, with a method for each event.
struct CommitState: Hashable, Sendable {
  enum Phase: Hashable, Sendable, CaseIterable {
    /// No changes are marked.
    case resting
    /// Changes are marked, and the frame clock is armed.
    case marked
    /// The frame clock has fired, and the loop has one more pass to reach its wait.
    case due
    /// A commit is in progress, and changes marked now are part of it.
    case collecting
    /// A commit is in progress, and changes marked now are part of the next one.
    case committing
    /// A commit is in progress, and changes are marked for the next one.
    case remarked
    /// The loop has ended, or the pipeline was invalidated.
    case ended
  }

  enum Action: Hashable, Sendable {
    case nothing
    /// Arm the frame clock. If `wakes` is true, make sure that the loop reaches its wait again before it sleeps.
    case arm(Tick, wakes: Bool)
    /// Disarm the frame clock.
    case disarm
    /// Perform the stages, then call `finish(at:)`.
    case commit
  }

  private(set) var phase = Phase.resting
  /// The minimum time between two commits that the pipeline makes on its own, in nanoseconds, or zero for no limit.
  let interval: Int64
  /// The earliest time of the next such commit.
  private(set) var earliest = Tick.distantPast
  /// The number of marks that the next commit covers, or the one in progress.
  private(set) var marks = 0
  /// The number of marks for the commit after that.
  private var laterMarks = 0

  init(interval: Int64) { self.interval = max(0, interval) }

  /// Marks a change.
  ///
  /// Calls `now` only if the time matters.
  mutating func mark(at now: () -> Tick) -> Action {
    switch phase {
    case .resting:
      marks = 1
      phase = .marked
      return armed(at: now())
    case .marked, .due, .collecting:
      marks += 1
      return .nothing
    case .committing:
      laterMarks = 1
      phase = .remarked
      return .nothing
    case .remarked:
      laterMarks += 1
      return .nothing
    case .ended: return .nothing
    }
  }

  /// The loop is about to wait, or a run ends.
  mutating func arrive(at now: () -> Tick) -> Action {
    switch phase {
    case .marked:
      let now = now()
      return now >= earliest ? begin(at: now) : .nothing
    case .due: return begin(at: now())
    case .resting, .collecting, .committing, .remarked, .ended: return .nothing
    }
  }

  /// The frame clock fired.
  mutating func fire(at now: Tick) -> Action {
    switch phase {
    case .marked:
      // If the loop reaches its wait, it does so in the following pass, and commits in the usual order.
      phase = .due
      return .arm(now, wakes: false)
    case .due: return begin(at: now)
    case .resting, .collecting, .committing, .remarked, .ended: return .nothing
    }
  }

  /// A commit was requested immediately.
  mutating func flush(at now: () -> Tick) -> Action {
    switch phase {
    case .marked, .due: return begin(at: now())
    case .resting, .collecting, .committing, .remarked, .ended: return .nothing
    }
  }

  private mutating func begin(at now: Tick) -> Action {
    phase = .collecting
    earliest = now + interval
    return .commit
  }

  /// The stages of `TurnOrder.commit` begin, so that changes marked from now on are part of the next commit.
  mutating func close() {
    if phase == .collecting { phase = .committing }
  }

  /// The last stage was performed.
  mutating func finish(at now: () -> Tick) -> Action {
    switch phase {
    case .collecting, .committing:
      marks = 0
      phase = .resting
      return .disarm
    case .remarked:
      (marks, laterMarks) = (laterMarks, 0)
      phase = .marked
      return armed(at: now())
    // The loop ended during a stage.
    case .ended: return .nothing
    case .resting, .marked, .due: preconditionFailure("a commit was finished in \(self)")
    }
  }

  /// The loop ended, or the pipeline was invalidated.
  mutating func end() -> Action {
    guard phase != .ended else { return .nothing }
    phase = .ended
    return .disarm
  }

  /// Arms the frame clock, for a loop that never waits: one interval after the previous commit, or after the mark.
  private func armed(at now: Tick) -> Action {
    now < earliest ? .arm(earliest, wakes: false) : .arm(now + interval, wakes: true)
  }
}
