// SPDX-License-Identifier: Apache-2.0

/// Everything that a run loop and the world around it remember.
///
/// The rules are in the extensions, by concern. R and M: the documentation's numbers.
struct ModelLoop {
  let program: Program
  let switches: Switches
  var log = Log([])

  // The world.

  /// The tick.
  var now = 0
  /// What is still to come from outside.
  var interruptions: ArraySlice<Interruption>
  /// Whether another thread acts at this moment.
  var isElsewhere = false

  // The items.

  var sources: [SourceState]
  var observers: [ObserverState]
  var timers: [TimerState]
  var blockCalls: [Int]

  // The loop.

  /// R21: a new loop has the default mode.
  var modes = ModeTable()
  /// R30: whether posting a block for the common pseudo-mode has made a mode of that name.
  var hasLiteralCommonMode = false
  /// R21: the default mode is common.
  var commonModes: Set<Int> = [0]
  /// In the order in which they came.
  var commonItems: [Item] = []
  /// R53: the posted blocks, in their order, but for those that a pass has taken.
  var blocks: [PostedBlock] = []
  /// The active runs, the innermost last.
  var runs: [RunState] = []
  /// R33: between the observers before and after the wait.
  var isWaiting = false
  /// How many times sources were signalled.
  var signalCount = 0

  // What lets it sleep and wakes it.

  /// R44: whether the counter that wakes the loop can be read.
  var wakeUpIsReadable = false
  /// The sleep, while there is one.
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

  /// Whether a rule is changed.
  func differs(_ difference: Difference) -> Bool { switches.contains(difference) }
}

/// A source (version 0).
struct SourceState {
  var isValid = true
  /// R62, R63: the place of its first signal among all signals; nil: not signalled.
  var signal: Int?
  /// M19: how many signals there had been when a run that returns after a source last performed it.
  var lastTurn = 0
  var calls = 0
}

struct ObserverState {
  var isValid = true
  /// R86: a nested run skips it meanwhile.
  var isFiring = false
  var calls = 0
}

struct TimerState {
  var isValid = true
  /// R93: the date as it was set.
  var date: Int
  /// When it is due: a date in the past counts from when it was set.
  var tick: Int
  /// R99a: it fires in no nested run meanwhile.
  var isFiring = false
  /// Whether it was given a date while it fired.
  var wasMoved = false
  var calls = 0
}

/// A block and the modes that may run it.
struct PostedBlock {
  let number: Int
  let modes: Set<ModeName>
}

/// R1: what belongs to one run.
struct RunState {
  let mode: Int
  let polls: Bool
  let returnsAfterSource: Bool
  var isStopped = false
  /// R46–R48: a wake-up counts for the coming wait; later ones are answered by the next pass.
  var listens = true
  /// M2: a wake-up that came before this run began, for the run around it.
  var keepsWakeUp = false
  /// M26: a wake-up that came when this run listened no more.
  var hasLateWakeUp = false
  /// M19: what had the poster that ended the last wait.
  var wakeCause = WakeCause.unknown
  /// M19: whether the last pass has left its timers to this one.
  var hasPutOff = false
}
