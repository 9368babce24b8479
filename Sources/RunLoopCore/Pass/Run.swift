// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The state of one run of a loop.
///
/// A nested run keeps the outer run's state on the stack.
struct Run {
  /// The run's mode, or `nil` outside every run.
  var mode: ModeState?
  var deadline = Tick.never
  /// The end of a guest's time budget, after which pending blocks are left to the next pass.
  var budgetEnd = Tick.never
  /// Whether the run makes a single pass without waiting, as it does if its time limit is not positive.
  var polls = false
  var returnsAfterSource = false
  /// Whether the run continues even if its mode is empty, as a test's run until a given date does.
  var staysWhenEmpty = false
  /// Whether the coming pass may check the main dispatch queue before it waits.
  var mayAskMainQueue = false
  /// The kind of post that ended the last wait, until phase 11, or unknown if another event came first.
  var wakeCause = WakeState.Cause.unknown
  /// Whether phase 11 of the last pass was postponed to this one.
  var hasPutOff = false
  /// The number of consecutive waits that were skipped because a before-waiting observer had posted work.
  var sleeplessPasses = 0
  /// Whether the run is a guest of its usual host, in which it therefore does not wait.
  var isServedByHost = false
  /// Whether the run has waited in a host.
  var hasWaitedInHost = false
  /// When the loop last looked at the run's descriptors, or never if that is unknown: before the first look while the
  /// loop is watched, after a nested run, and in a run that only polls, which the caller repeats when it likes.
  var lastLook = Tick.never
  /// How long the descriptors that were just found may have been ready, in nanoseconds, or zero if that is short.
  var starvation: Int64 = 0
  /// The number of active runs.
  var depth = 0

  /// The number of consecutive sleepless passes after which they are reported.
  static let mostSleeplessPasses = 10_000
  /// The number of consecutive runs with an empty mode after which they are reported.
  static let mostEmptyRuns = 10_000
}

/// The stop state of the innermost run, and the permanent stop of a loop whose thread is stopping.
struct StopFlag: ~Copyable {
  /// The stop state of the innermost run.
  enum State: UInt8, AtomicRepresentable {
    /// No run is active, and a stop has no effect.
    case idle
    case running
    case stopped
  }

  // Relaxed ordering suffices for consuming a stop: it was acquired just before, and consuming it publishes nothing.
  private let state = Atomic<State>(.idle)
  private let ending = Atomic<Bool>(false)

  /// Begins a run, and returns the state of the outer run for the caller to keep.
  borrowing func begin() -> State { state.exchange(.running, ordering: .acquiringAndReleasing) }

  /// Ends a run, and discards a stop that was not consumed.
  borrowing func end(before: State) { state.store(before, ordering: .releasing) }

  /// Stops the innermost run, and returns `false` if there is none.
  borrowing func stop() -> Bool {
    state.compareExchange(expected: .running, desired: .stopped, ordering: .acquiringAndReleasing).original != .idle
  }

  /// Consumes a stop, and returns `true` once for each.
  borrowing func consume() -> Bool {
    guard state.load(ordering: .acquiring) == .stopped else { return false }
    state.store(.running, ordering: .relaxed)
    return true
  }

  /// Whether the innermost run or every run is stopped.
  var isSet: Bool { state.load(ordering: .acquiring) == .stopped || isEnding }

  /// Whether the loop's thread is stopping, so that every run ends and new ones return immediately.
  var isEnding: Bool { ending.load(ordering: .acquiring) }

  borrowing func endEveryRun() { ending.store(true, ordering: .releasing) }
}
