// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// When a pipeline commits, as a value: each event is a function that changes it and says what is to be done.
struct CommitState: Hashable, Sendable {
  enum Phase: Hashable, Sendable, CaseIterable {
    /// Nothing is marked.
    case resting
    /// Something is marked, and the frame clock is armed.
    case marked
    /// The frame clock has come to its date: the loop has one more pass to come to its wait.
    case due
    /// A commit is under way, which takes in what is marked meanwhile.
    case collecting
    /// A commit is under way, and what is marked from now on is for the next.
    case committing
    /// A commit is under way, and something is marked for the next.
    case remarked
    /// The loop has ended.
    case ended
  }

  enum Action: Hashable, Sendable {
    case nothing
    /// Set the frame clock to a date, and see to it that the loop comes to its wait once more before it sleeps.
    case arm(Tick, wakes: Bool)
    /// Take the frame clock's date away.
    case disarm
    /// Perform the stages, and then say that the commit is finished.
    case commit
  }

  private(set) var phase = Phase.resting
  /// The nanoseconds between two commits that the pipeline makes by itself; zero: no limit.
  let interval: Int64
  /// The first date at which it makes the next by itself.
  private(set) var earliest = Tick.distantPast
  /// The marks that the coming commit covers, or the one that is under way.
  private(set) var marks = 0
  /// The marks for the one after it.
  private var laterMarks = 0

  init(interval: Int64) { self.interval = max(0, interval) }

  /// Something is to be committed.
  ///
  /// The time is asked for if it matters.
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

  /// The loop is about to wait, or its run ends.
  mutating func arrive(at now: () -> Tick) -> Action {
    switch phase {
    case .marked:
      let now = now()
      return now >= earliest ? begin(at: now) : .nothing
    case .due: return begin(at: now())
    case .resting, .collecting, .committing, .remarked, .ended: return .nothing
    }
  }

  /// The frame clock's date has arrived.
  mutating func fire(at now: Tick) -> Action {
    switch phase {
    case .marked:
      // A loop that comes to its wait does so in the pass that follows, and commits in order.
      phase = .due
      return .arm(now, wakes: false)
    case .due: return begin(at: now)
    case .resting, .collecting, .committing, .remarked, .ended: return .nothing
    }
  }

  /// The commit is to be made now.
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

  /// The stages that commit begin.
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
    // The loop ended within a stage.
    case .ended: return .nothing
    case .resting, .marked, .due: preconditionFailure("a commit was finished in \(self)")
    }
  }

  /// The loop has ended.
  mutating func end() -> Action {
    guard phase != .ended else { return .nothing }
    phase = .ended
    return .disarm
  }

  /// The date by which a loop that never comes to its wait commits: an interval after the commit before, or after the
  /// mark.
  private func armed(at now: Tick) -> Action {
    now < earliest ? .arm(earliest, wakes: false) : .arm(now + interval, wakes: true)
  }
}
