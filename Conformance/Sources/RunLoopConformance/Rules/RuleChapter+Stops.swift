// SPDX-License-Identifier: Apache-2.0

extension RuleChapter {
  static let stops = RuleChapter(
    title: "Stop",
    rules: [
      Rule(
        "R34",
        "A stop outside a run is discarded.",
        Script(
          Program(observers: [.ofRuns], timers: [.at(1)], main: .adds(.o0, .t0) + [.stop, .runs()]),
          """
          1m0 E @1 T0 X 0- =finished
          """)),
      Rule(
        "R35",
        "A stop ends the innermost run only, and wakes it.",
        Script(
          Program(
            sources: [.does(.runs(.other)), .idle], timers: [.at(1, .stop)],
            main: .adds(.s0) + [.add(.t0, .other), .signal(0), .runs()],
            whileAsleep: [Interruption(at: 3, [.stop])]),
          "1m0 S0 @1 2m1 T0 1m0 =stopped @3 0- =stopped")),
      Rule(
        "R36",
        "A run that was stopped before a nested run began ends after the nested run, which is not stopped.",
        Script(
          Program(
            sources: [.does(.stop, .runs(.other)), .idle], observers: [.ofRuns], timers: [.at(1)],
            main: .adds(.s0, .s1, .o0) + [.add(.o0, .other), .add(.t0, .other), .signal(0), .runs()]),
          "1m0 E S0 2m1 E @1 T0 X 1m0 =finished X 0- =stopped")),
      Rule(
        "R37",
        "A stop by an entry observer ends the run before its first pass, and its wake-up costs the next run a pass.",
        here: "A stop by an entry observer ends the run before its first pass, and costs the next run nothing (M20).",
        Script(
          Program(
            sources: [.idle], observers: [.ofAll, .at(Stages.entry, repeats: false, .once(.stop))], timers: [.at(2)],
            main: .adds(.o0, .o1, .t0) + [.runs(), .runs()]),
          coreFoundation: "1m0 E E.1 X 0- =stopped 1m0 E BT BS BW AW BT BS BW @2 AW T0 X 0- =finished",
          ours: "1m0 E E.1 X 0- =stopped 1m0 E BT BS BW @2 AW T0 X 0- =finished", [.m20])),
      Rule(
        "R38",
        "A stop by an exit observer is discarded.",
        Script(
          Program(
            observers: [.ofRuns, .at(Stages.exit, .once(.stop))], timers: [.at(2)],
            main: .adds(.o0, .o1, .t0) + [.polls(), .runs()]),
          "1m0 E X X.1 0- =timedOut 1m0 E @2 T0 X X.1 0- =finished")),
      Rule(
        "R39",
        "A stop before the wait of a pass lets the pass end without a sleep; a pass that has performed a source "
          + "does not wait.",
        Script(
          Program(
            sources: [.does(.stop)], observers: [.ofAll, .at(Stages.beforeTimers, repeats: false, .once(.stop))],
            blocks: [Body()],
            main: .adds(.o0, .o1, .s0) + [.posts(0), .runs(), .signal(0), .runs()]),
          "1m0 E BT BT.1 BS B0 BW AW X 0- =stopped 1m0 E BT BS S0 X 0- =stopped")),
      Rule(
        "R40",
        "A stop by another thread during a call-out ends the run after that pass.",
        Script(
          Program(
            sources: [.idle], observers: [.ofAll], timers: [.at(1, .elsewhere([.stop]), .posts(0))], blocks: [Body()],
            main: .adds(.o0, .s0, .t0) + [.runs()]),
          "1m0 E BT BS BW @1 AW T0 B0 X 0- =stopped")),
      Rule(
        "R41",
        "A stop takes effect once and is discarded at the end of its run.",
        Script(
          Program(
            sources: [.does(.stop, .stop)], timers: [.at(1)],
            main: .adds(.s0, .t0) + [.signal(0), .runs(), .invalidate(.s0), .runs()]),
          "1m0 S0 0- =stopped @1 1m0 T0 0- =finished")),
      Rule(
        "R42",
        "A stop of a mode is kept until it ends a run of that mode, whichever mode is innermost, and creates the "
          + "mode.",
        Script(
          Program(
            sources: [.does(.polls(.other)), .does(.stopMode(0))], observers: [.ofRuns],
            main: [.stopMode(2), .asks(.modes)] + .adds(.s0, .o0) + [
              .add(.s1, .other), .add(.s1, .mode(2)), .runs(.mode(2)), .signal(0), .signal(1), .runs(),
            ]),
          "modes=m0+m2 =stopped 1m0 E S0 2m1 S1 1m0 =timedOut X 0- =stopped")),
      Rule(
        "R43",
        "`run()` continues after a stop.",
        notShown: foundationReason),
    ])
}
