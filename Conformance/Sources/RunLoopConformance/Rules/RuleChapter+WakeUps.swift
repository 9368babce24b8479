// SPDX-License-Identifier: Apache-2.0

extension RuleChapter {
  static let wakeUps = RuleChapter(title: "Wake-up", rules: ofWakeUps + ofChanges)

  private static let ofWakeUps = [
    Rule(
      "R44",
      "Several wake-ups count as one until the loop handles them.",
      Script(
        Program(
          sources: [.idle], observers: [.ofWait], main: .adds(.o0, .s0) + [.runs()],
          whileAsleep: [Interruption(at: 1, [.wakeUp, .wakeUp, .wakeUp])]),
        "1m0 BW @1 AW BW asleep-for-ever~ AW 0- =stopped")),
    Rule(
      "R45",
      "A wake-up of a sleeping loop causes one more pass and ends no run.",
      Script(
        Program(
          sources: [.idle], observers: [.ofAll], timers: [.at(5, .stop)], main: .adds(.o0, .s0, .t0) + [.runs()],
          whileAsleep: [Interruption(at: 1, [.wakeUp])]),
        "1m0 E BT BS BW @1 AW BT BS BW @5 AW T0 X 0- =stopped")),
    Rule(
      "R46",
      "A wake-up outside a run is discarded.",
      Script(
        Program(observers: [.ofWait], timers: [.at(1)], main: .adds(.o0, .t0) + [.wakeUp, .runs()]),
        """
        1m0 BW @1 AW T0 0- =finished
        """)),
    Rule(
      "R47",
      "A wake-up after the wait of a pass is discarded, because the next pass follows in any case; so is one after the "
        + "last wait of a nested run.",
      here: "A wake-up after the wait of a pass is discarded, because the next pass follows in any case; one after the "
        + "last wait of a nested run belongs to the enclosing run (M26).",
      Script(
        Program(
          observers: [.ofWait, .at(Stages.afterWaiting | Stages.exit, .always(.wakeUp))],
          timers: [.at(1, .wakeUp), .at(2)],
          main: .adds(.o0, .o1, .t0, .t1) + [.runs()]),
        "1m0 BW @1 AW AW.1 T0 BW @2 AW AW.1 T1 X.1 0- =finished"),
      Script(
        Program(
          sources: [.idle],
          observers: [
            .ofWait, .at(Stages.beforeSources, repeats: false, .once(.polls(.other))), .at(Stages.exit, .once(.wakeUp)),
          ],
          main: .adds(.o0, .o1, .s0) + [.add(.s0, .other), .add(.observer(2), .other), .runs()]),
        coreFoundation: "1m0 BS.1 2m1 X.2 1m0 =timedOut BW asleep-for-ever~ AW 0- =stopped",
        ours: "1m0 BS.1 2m1 X.2 1m0 =timedOut BW AW BW asleep-for-ever~ AW 0- =stopped", [.m26])),
    Rule(
      "R48",
      "A wake-up during a pass, before its wait, prevents that wait from sleeping; a polling pass consumes it.",
      Script(
        Program(
          observers: [.ofWait, .at(Stages.beforeTimers, repeats: false, .once(.wakeUp))], timers: [.at(2)],
          main: .adds(.o0, .o1, .t0) + [.runs()]),
        "1m0 BT.1 BW AW BW @2 AW T0 0- =finished"),
      Script(
        Program(
          sources: [.does(.wakeUp)], observers: [.ofWait], timers: [.at(2, .stop)],
          main: .adds(.o0, .s0, .t0) + [.signal(0), .runs()]),
        "1m0 S0 BW @2 AW T0 0- =stopped")),
    Rule(
      "R49",
      "A run nested in an observer before the wait consumes the wake-up of the enclosing run.",
      here: "A run nested in an observer before the wait leaves the wake-up to the enclosing run (M2).",
      Script(
        Program(
          sources: [.idle],
          observers: [
            .ofWait, .at(Stages.beforeWaiting, repeats: false, .once(.elsewhere([.wakeUp]), .polls(.other))),
          ],
          main: .adds(.o0, .o1, .s0) + [.add(.s0, .other), .runs()]),
        coreFoundation: "1m0 BW BW.1 =timedOut asleep-for-ever~ AW 0- =stopped",
        ours: "1m0 BW BW.1 =timedOut AW BW asleep-for-ever~ AW 0- =stopped", [.m2])),
  ]

  private static let ofChanges = [
    Rule(
      "R50",
      "Adding a timer, a descriptor source or a port with messages and moving a timer take effect on a sleeping loop; "
        + "a signal and the removal of an item require a wake-up.",
      Script(
        Program(
          sources: [.idle], observers: [.ofWait], timers: [.at(3), .at(4, .stop)], main: .adds(.o0, .s0) + [.runs()],
          whileAsleep: [Interruption(at: 1, [.add(.t0, .main), .add(.t1, .common)])]),
        "1m0 BW @3 AW T0 BW @4 AW T1 0- =stopped"),
      Script(
        Program(
          sources: [.idle], observers: [.ofWait], timers: [.at(4)], main: .adds(.o0, .s0, .t0) + [.runsForSource],
          whileAsleep: [Interruption(at: 1, [.signal(0)])]),
        "1m0 BW @4 AW T0 S0 0- =handledSource")),
    Rule(
      "R51",
      "Setting a timer's date from another thread takes effect on a sleeping loop and causes a pass.",
      here: "Setting a timer's date from another thread takes effect on a sleeping loop without a pass (M25).",
      Script(
        Program(
          observers: [.ofWait], timers: [.at(5)], main: .adds(.o0, .t0) + [.runs()],
          whileAsleep: [Interruption(at: 2, [.setDate(0, 9)])]),
        coreFoundation: "1m0 BW @2 AW BW @9 AW T0 0- =finished", ours: "1m0 BW @9 AW T0 0- =finished", [.m25])),
    Rule(
      "R52",
      "A wake-up takes the loop's lock, and waits for a call-out during which the lock is held.",
      here: "No call-out delays a wake-up by another thread (M10).",
      notShown: "It requires another thread that is blocked."),
  ]
}
