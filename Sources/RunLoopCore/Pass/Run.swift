// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The state of one run of a loop.
///
/// Nested runs keep the outer run's state on the stack.
struct Run {
  /// The mode of the run; nil outside every run.
  var mode: ModeState?
  var deadline = Tick.never
  /// The time after which the blocks that wait are left to the next pass: of a guest that has a part of each frame.
  var budgetEnd = Tick.never
  /// Whether the run makes one pass and does not wait, as a run does whose time was over before it began.
  var polls = false
  var returnsAfterSource = false
  /// Whether the run goes on even if its mode is empty, as a run does that a test has begun until a date.
  var staysWhenEmpty = false
  /// Whether the coming pass may ask the main dispatch queue before it waits.
  var mayAskMainQueue = false
  /// What the poster that ended the last wait had for the loop, until phase 11; unknown if something else came first.
  var wakeCause = WakeState.Cause.unknown
  /// Whether phase 11 of the last pass was left to this one.
  var hasPutOff = false
  /// How many waits in a row were skipped because an observer that was called before the wait had posted work.
  var sleeplessPasses = 0
  /// Whether the run is a guest of the loop that is otherwise this one's host: it does not wait there.
  var isServedByHost = false
  /// Whether the run has waited in a host.
  var hasWaitedInHost = false
  /// How many runs are active.
  var depth = 0

  /// After how many such passes the loop reports them.
  static let mostSleeplessPasses = 10_000
  /// After how many runs in a row that find their mode empty the loop reports them.
  static let mostEmptyRuns = 10_000
}

/// The stop flag of the innermost run, and the sticky one of a loop whose thread is stopping.
struct StopFlag: ~Copyable {
  /// What the innermost run knows of stops.
  enum State: UInt8, AtomicRepresentable {
    /// No run is active: a stop is forgotten.
    case idle
    case running
    case stopped
  }

  // Relaxed where a stop is answered: it was acquired just before, and nothing is published by the answer.
  private let state = Atomic<State>(.idle)
  private let ending = Atomic<Bool>(false)

  /// Begins a run; the caller keeps the state of the run around it.
  borrowing func begin() -> State { state.exchange(.running, ordering: .acquiringAndReleasing) }

  /// Ends a run.
  ///
  /// A stop that it has not answered is forgotten with it.
  borrowing func end(before: State) { state.store(before, ordering: .releasing) }

  /// Stops the innermost run; returns false if there is none.
  borrowing func stop() -> Bool {
    state.compareExchange(expected: .running, desired: .stopped, ordering: .acquiringAndReleasing).original != .idle
  }

  /// Answers a stop; returns true once.
  borrowing func consume() -> Bool {
    guard state.load(ordering: .acquiring) == .stopped else { return false }
    state.store(.running, ordering: .relaxed)
    return true
  }

  /// Whether the innermost run is stopped, or every run is.
  var isSet: Bool { state.load(ordering: .acquiring) == .stopped || isEnding }

  /// Whether the loop's thread is stopping: every run ends, and a new one returns at once.
  var isEnding: Bool { ending.load(ordering: .acquiring) }

  borrowing func endEveryRun() { ending.store(true, ordering: .releasing) }
}
