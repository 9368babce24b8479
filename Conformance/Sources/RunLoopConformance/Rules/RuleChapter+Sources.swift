// SPDX-License-Identifier: Apache-2.0

extension RuleChapter {
  static let sources = RuleChapter(title: "Sources", rules: performing + signalling + places)

  private static let performing = [
    Rule(
      "R62",
      "Signalled sources perform in ascending order, and those of equal order in the order of their first signals.",
      Script(
        Program(
          sources: [.idle, SourcePlan(order: 1), .idle, SourcePlan(order: -1)],
          main: .adds(.s0, .s1, .source(2), .source(3)) + [.signal(2), .signal(1), .signal(0), .signal(3), .polls()]),
        "1m0 S3 S2 S0 S1 0- =timedOut")),
    Rule(
      "R63",
      "A source that is signalled again before it performs keeps its place and performs once.",
      Script(
        Program(
          sources: [.idle, .idle], main: .adds(.s0, .s1) + [.signal(0), .signal(1), .signal(0), .polls(), .polls()]),
        "1m0 S0 S1 0- =timedOut =timedOut")),
    Rule(
      "R64",
      "The signal is cleared before the source performs: a source that signals itself performs again in the next "
        + "pass, and the loop does not sleep before it.",
      Script(
        Program(
          sources: [SourcePlan(body: Body([[.asks(.isSignalled(0)), .signal(0)], [.stop]]))], observers: [.ofAll],
          main: .adds(.o0, .s0) + [.signal(0), .runs()]),
        "1m0 E BT BS S0 signalled(S0)=no BT BS S0 X 0- =stopped")),
    Rule(
      "R65",
      "A source that an earlier source of the pass signals performs in the next pass.",
      Script(
        Program(
          sources: [.does(.signal(1)), SourcePlan(order: 1, body: .once(.stop))], observers: [.ofAll],
          main: .adds(.o0, .s0, .s1) + [.signal(0), .runs()]),
        "1m0 E BT BS S0 BT BS S1 X 0- =stopped")),
    Rule(
      "R66",
      "A source that an earlier source removes still performs in this pass; one that it invalidates does not.",
      Script(
        Program(
          sources: [.does(.remove(.s1, .main), .invalidate(.source(2))), .idle, .idle, SourcePlan(order: 1)],
          main: .adds(.s0, .s1, .source(2), .source(3)) + [.signal(0), .signal(1), .signal(2), .signal(3), .polls()]),
        "1m0 S0 S1 S3 0- =timedOut")),
    Rule(
      "R67",
      "A source that a nested run has performed is skipped by the enclosing pass.",
      Script(
        Program(
          sources: [.does(.polls()), .idle, .idle],
          main: .adds(.s0, .s1, .source(2)) + [.signal(0), .signal(1), .signal(2), .polls(), .polls()]),
        "1m0 S0 2m0 S1 S2 1m0 =timedOut 0- =timedOut =timedOut")),
    Rule(
      "R68",
      "A source that is signalled again can perform within its own call-out, in a nested run.",
      Script(
        Program(sources: [.does(.signal(0), .polls())], main: .adds(.s0) + [.signal(0), .polls()]),
        """
        1m0 S0 2m0 S0 1m0 =timedOut 0- =timedOut
        """)),
    Rule(
      "R69",
      "Only the last source of a pass determines whether the pass has handled a source.",
      here: "A pass has handled a source if any source performed, even if the last one did not (M4).",
      Script(
        Program(
          sources: [.does(.invalidate(.s1)), SourcePlan(order: 1)], observers: [.ofAll], timers: [.at(2, .stop)],
          main: .adds(.o0, .s0, .s1, .t0) + [.signal(0), .signal(1), .runs()]),
        coreFoundation: "1m0 E BT BS S0 BW @2 AW T0 X 0- =stopped",
        ours: "1m0 E BT BS S0 BT BS BW @2 AW T0 X 0- =stopped", [.m4])),
  ]

  private static let signalling = [
    Rule(
      "R70",
      "A signal wakes no loop, is kept while the source is in no mode, and has no effect on an invalid source.",
      Script(
        Program(
          sources: [.idle, .idle], timers: [.at(3)],
          main: .adds(.t0) + [
            .signal(0), .invalidate(.s1), .signal(1), .asks(.isSignalled(0)), .asks(.isSignalled(1)), .add(.s0, .main),
            .polls(), .runs(),
          ],
          whileAsleep: [Interruption(at: 1, [.signal(0), .invalidate(.s0)])]),
        "signalled(S0)=yes signalled(S1)=no 1m0 S0 0- =timedOut @3 1m0 T0 0- =finished")),
    Rule(
      "R71",
      "A source can be in many modes of many loops; one signal is performed once.",
      Script(
        Program(
          sources: [.idle],
          main: .adds(.s0) + [.add(.s0, .other), .signal(0), .polls(.other), .polls(), .polls(.other)]),
        "1m1 S0 0- =timedOut =timedOut =timedOut")),
  ]

  private static let places = [
    Rule(
      "R72",
      "`schedule` is called once for each concrete mode that a source enters, unless it leaves before the call.",
      Script(
        Program(
          sources: [SourcePlan(tellsModes: true)],
          main: [.add(.s0, .other), .add(.s0, .other), .addCommonMode(2), .invalidate(.s0)]),
        "S0+m1 S0-m1"),
      Script(
        Program(sources: [SourcePlan(tellsModes: true)], main: [.add(.s0, .common), .add(.s0, .main)]),
        """
        S0+m0 S0-m0
        """)),
    Rule(
      "R73",
      "`cancel` is called once for each `schedule` when the source leaves the mode: removed, invalidated, or at its "
        + "loop's end; if the `schedule` is still running, its thread calls `cancel` after it returns.",
      Script(
        Program(
          sources: [SourcePlan(tellsModes: true), SourcePlan(tellsModes: true), SourcePlan(tellsModes: true)],
          main: .adds(.s0, .s1, .source(2)) + [
            .remove(.s0, .main), .remove(.s0, .main), .remove(.s1, .other), .invalidate(.s1), .invalidate(.s1),
          ]),
        "S0+m0 S1+m0 S2+m0 S0-m0 S1-m0 S2-m0")),
    Rule(
      "R74",
      "Invalidating a source is permanent, clears its signal, and removes it from all modes and common items.",
      Script(
        Program(
          sources: [.idle],
          main: .adds(.s0) + [
            .add(.s0, .common), .add(.s0, .other), .signal(0), .invalidate(.s0), .asks(.isValid(.s0)),
            .asks(.isSignalled(0)), .asks(.contains(.s0, .main)), .asks(.contains(.s0, .common)), .add(.s0, .main),
            .asks(.contains(.s0, .main)), .runs(), .runs(.other),
          ]),
        """
        valid(S0)=no signalled(S0)=no contains(S0,m0)=no contains(S0,common)=no contains(S0,m0)=no =finished \
        =finished
        """)),
    Rule(
      "R75",
      "Two sources with equal contexts are equal: a mode accepts only one of them.",
      here: "A source is equal to itself only (M5).",
      notShown: "The sources of a program are all different."),
    Rule(
      "R76",
      "A source retains its loops until it leaves them.",
      notShown: "The rule describes the loop's memory."),
  ]
}
