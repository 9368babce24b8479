// SPDX-License-Identifier: Apache-2.0

/// The experiments of the laboratory, by group and number.
enum Catalog {
  static let all: [any Experiment] = [
    OneShotThread(), HeldOneShotThread(), EmptyRun(), ResidentByPort(), PortBeforeRun(), RunningThreadKept(),
    OneThreadOnly(), SerialQueue(), TurnPerEvent(), WorkersWithoutLoops(), FinishedThreadTakesNothing(),
    RunCannotBeStopped(), FlagAndStop(), TargetRetained(), OwnerGoes(), LivingThreads(), PermanentThreads(),
    PermanentThreadFaults(), LastItemGoes(),
    OneLoopPerThread(), OwnLoopOnly(), LoopEndsWithThread(), WhoHoldsWhom(), FourThreads(),
    TenSteps(), RunResults(), OneModeAtATime(), CommonModes(), DuplicateItems(), EmptyModes(), ModesOnlyGrow(),
    SignalAndWake(), TimerDates(), ObserverOrder(), CallOutNames(), LoopDescribed(), MainDispatchQueue(),
    DelayedAndPosted(), Turns(), TimerWithoutLoop(), TimerOwner(), FiveModes(),
    AutoreleasePool(), EventPath(), Gestures(), InterfaceCommit(),
    AsyncDisplay(), ConnectionPath(), OperationHops(),
    WhoPosted(), WhyAlive(), SeenFromOutside(), HangFound(),
  ]

  /// The ids of all experiments, in order.
  static var ids: [String] { all.map(\.id) }

  /// Returns the experiment with an id, which may be in lower case.
  static func experiment(_ id: String) -> (any Experiment)? {
    all.first { $0.id == id.uppercased() }
  }
}
