// SPDX-License-Identifier: Apache-2.0

/// The complete state of a run loop and of its environment.
///
/// The rules are in the extensions, by concern. R and M refer to the documentation's numbers.
struct ModelLoop {
  let program: Program
  let switches: Switches
  var log = Log([])

  // The environment.

  /// The current tick.
  var now = 0
  /// The interruptions that have not happened yet.
  var interruptions: ArraySlice<Interruption>
  /// Whether another thread is acting now.
  var isElsewhere = false

  // The items.

  var sources: [SourceState]
  var observers: [ObserverState]
  var timers: [TimerState]
  var blockCalls: [Int]

  // The loop.

  /// The modes; a new loop has the default mode (R21).
  var modes = ModeTable()
  /// Whether posting a block for the common pseudo-mode has created a mode of that name (R30).
  var hasLiteralCommonMode = false
  /// The common modes, which include the default mode (R21).
  var commonModes: Set<Int> = [0]
  /// The common items, in the order of their addition.
  var commonItems: [Item] = []
  /// The posted blocks in order, without those that a pass has taken (R53).
  var blocks: [PostedBlock] = []
  /// The active runs, the innermost last.
  var runs: [RunState] = []
  /// Whether the loop is between the observers before and after the wait (R33).
  var isWaiting = false
  /// The number of signals of all sources.
  var signalCount = 0

  // The state of sleeping and waking.

  /// Whether the wake-up descriptor is readable (R44).
  var wakeUpIsReadable = false
  /// The current sleep, if any.
  var sleep: SleepState?

  init(_ program: Program, _ switches: Switches) {
    self.program = program
    self.switches = switches
    interruptions =
      program.whileAsleep.enumerated()
      .sorted { ($0.element.tick, $0.offset) < ($1.element.tick, $1.offset) }.map(\.element)[...]
    sources = program.sources.map { _ in SourceState() }
    observers = program.observers.map { _ in ObserverState() }
    timers = program.timers.map { TimerState(date: $0.date, tick: Self.tick(of: $0.date, now: 0, switches)) }
    blockCalls = program.blocks.map { _ in 0 }
    makeMode(0)
  }

  /// Whether a rule has the behavior of our loop.
  func differs(_ difference: Difference) -> Bool { switches.contains(difference) }
}

/// A source (version 0).
struct SourceState {
  var isValid = true
  /// The number of its first signal among all signals, or nil if it is not signalled (R62, R63).
  var signal: Int?
  /// M19: the number of signals when a run that returns after a source last performed it.
  var lastTurn = 0
  var calls = 0
}

struct ObserverState {
  var isValid = true
  /// Whether the observer is being called, so that nested runs skip it (R86).
  var isFiring = false
  var calls = 0
}

struct TimerState {
  var isValid = true
  /// The date as it was set (R93).
  var date: Int
  /// The tick at which it is due, which for a past date is the time at which it was set.
  var tick: Int
  /// Whether the timer is being called, so that it does not fire in nested runs (R99a).
  var isFiring = false
  /// Whether its date was set while it fired.
  var wasMoved = false
  var calls = 0
}

/// A block and the modes that may run it.
struct PostedBlock {
  let number: Int
  let modes: Set<ModeName>
}

/// The state of one run (R1).
struct RunState {
  let mode: Int
  let polls: Bool
  let returnsAfterSource: Bool
  var isStopped = false
  /// Whether a wake-up counts for the coming wait; later ones are handled by the next pass (R46–R48).
  var listens = true
  /// M2: whether a wake-up from before this run is kept for the run around it.
  var keepsWakeUp = false
  /// M26: whether a wake-up arrived when this run no longer listened.
  var hasLateWakeUp = false
  /// M19: the cause of the post that ended the last wait.
  var wakeCause = WakeCause.unknown
  /// M19: whether the last pass has left its timers to this one.
  var hasPutOff = false
}
