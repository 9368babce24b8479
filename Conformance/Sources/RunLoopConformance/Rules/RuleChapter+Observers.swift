// SPDX-License-Identifier: Apache-2.0

extension RuleChapter {
  static let observers = RuleChapter(title: "Observers", rules: order + belonging)

  private static let order = [
    Rule(
      "R83",
      "Observers of a stage are called in ascending order, and those of equal order as they were added; the list is "
        + "fixed when the stage begins.",
      Script(
        Program(
          sources: [.idle],
          observers: [.ofRuns, .at(Stages.entry, order: 1), .ofRuns, .at(Stages.entry, order: -1)],
          main: .adds(.s0, .observer(2), .o1, .o0, .observer(3)) + [.polls()]),
        "1m0 E.3 E.2 E E.1 X.2 X 0- =timedOut")),
    Rule(
      "R84",
      "An observer that does not repeat is valid during its first call and is invalidated after it, however many "
        + "stages it observes.",
      Script(
        Program(
          sources: [.idle], observers: [.at(Stages.all, repeats: false, .once(.asks(.isValid(.o0))))],
          main: .adds(.s0, .o0) + [.polls(), .asks(.isValid(.o0)), .asks(.contains(.o0, .main))]),
        "1m0 E valid(O0)=yes 0- =timedOut valid(O0)=no contains(O0,m0)=no")),
    Rule(
      "R85",
      "During a stage, an observer that was removed is still called, and one that was invalidated is not; one that was "
        + "added is called from the next stage on.",
      Script(
        Program(
          sources: [.idle],
          observers: [
            .at(Stages.beforeTimers, .once(.remove(.o1, .main), .invalidate(.observer(2)), .add(.observer(3), .main)))
          ] + Array(repeating: .at(Stages.beforeTimers | Stages.beforeSources), count: 3),
          main: .adds(.s0, .o0, .o1, .observer(2)) + [.polls()]),
        "1m0 BT BT.1 BS.3 0- =timedOut")),
    Rule(
      "R86",
      "An observer that is being called is skipped by nested runs at every stage; the others are called.",
      Script(
        Program(
          sources: [.idle], observers: [.at(Stages.all, Body([[], [.polls()]])), .ofRuns],
          main: .adds(.s0, .o0, .o1) + [.polls()]),
        "1m0 E E.1 BT 2m0 E.1 X.1 1m0 =timedOut BS X X.1 0- =timedOut")),
  ]

  private static let belonging = [
    Rule(
      "R87",
      "An observer belongs to one loop at a time, in any number of its modes, until it leaves the last of them.",
      Script(
        Program(
          sources: [.idle], observers: [.ofRuns],
          main: .adds(.s0, .o0) + [
            .add(.s0, .other), .add(.o0, .other), .polls(), .polls(.other), .remove(.o0, .main), .remove(.o0, .other),
            .polls(), .add(.o0, .main), .polls(),
          ]),
        "1m0 E X 0- =timedOut 1m1 E X 0- =timedOut =timedOut 1m0 E X 0- =timedOut")),
    Rule(
      "R88",
      "An observer's activities do not change; an observer without activities is never called.",
      Script(Program(sources: [.idle], observers: [.at(0)], main: .adds(.s0, .o0) + [.polls()]), "=timedOut")),
    Rule(
      "R89",
      "An observer's context is released when it is invalidated, even during its call-out.",
      here: "An observer's handler is released when the observer is invalid and no call-out runs (M22).",
      notShown: "Programs hold no objects."),
    Rule(
      "R90",
      "An observer may remove and add itself in its own call-out.",
      Script(
        Program(
          sources: [.idle],
          observers: [.at(Stages.entry, .once(.remove(.o0, .main), .add(.o0, .main))), .at(Stages.entry)],
          main: .adds(.s0, .o0, .o1) + [.polls(), .polls()]),
        "1m0 E E.1 0- =timedOut 1m0 E.1 E 0- =timedOut")),
    Rule(
      "R91",
      "A nested run calls the observers of its own entry and exit, except those being called.",
      Script(
        Program(
          sources: [.does(.polls())], observers: [.ofRuns], main: .adds(.s0, .o0) + [.signal(0), .polls()]),
        "1m0 E S0 2m0 E X 1m0 =timedOut X 0- =timedOut")),
  ]
}
