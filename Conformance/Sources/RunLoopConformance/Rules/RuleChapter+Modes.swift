// SPDX-License-Identifier: Apache-2.0

extension RuleChapter {
  static let modes = RuleChapter(title: "Modes", rules: making + emptiness + questions)

  private static let making = [
    Rule(
      "R20",
      "Modes are equal if their names are equal.",
      Script(
        Program(
          // Mode names from 8 on are created again each time.
          sources: [.idle],
          main: [
            .add(.s0, .mode(8)), .asks(.contains(.s0, .mode(8))), .signal(0), .polls(.mode(8)), .remove(.s0, .mode(8)),
            .asks(.contains(.s0, .mode(8))), .asks(.modes),
          ]),
        "contains(S0,m8)=yes 1m8 S0 0- =timedOut contains(S0,m8)=no modes=m0+m8")),
    Rule(
      "R21",
      "A new loop has one mode, the default mode, which is common.",
      Script(
        Program(sources: [.idle], main: [.asks(.modes), .add(.s0, .common), .asks(.contains(.s0, .main))]),
        "modes=m0 contains(S0,m0)=yes")),
    Rule(
      "R22",
      "Adding an item, posting a block or stopping the mode creates it; running it, querying it, removing an item, or "
        + "making it common without common items does not.",
      Script(
        Program(
          sources: [.idle], blocks: [Body()],
          main: [
            .asks(.contains(.s0, .mode(1))), .remove(.s0, .mode(2)), .runs(.mode(3)), .addCommonMode(4),
            .asks(.nextDate(.mode(5))), .asks(.modes), .add(.s0, .mode(6)), .perform(0, [.mode(7), .mode(8)]),
            .stopMode(9), .asks(.modes),
          ]),
        "contains(S0,m1)=no =finished next(m5)=none modes=m0 modes=m0+m6+m7+m8+m9")),
    Rule(
      "R23",
      "A mode is never removed.",
      Script(
        Program(sources: [.idle], main: [.add(.s0, .other), .invalidate(.s0), .runs(.other), .asks(.modes)]),
        """
        =finished modes=m0+m1
        """)),
    Rule(
      "R24",
      "A run of an unknown or empty mode finishes at once, calls no observer and creates no mode.",
      Script(
        Program(observers: [.ofRuns], main: [.add(.o0, .main), .runs(), .runs(.other), .asks(.modes)]),
        """
        =finished =finished modes=m0
        """)),
  ]

  private static let emptiness = [
    Rule(
      "R25",
      "Sources, descriptor sources, ports, timers, and blocks that the mode can run keep it alive; observers and "
        + "blocks of other modes do not.",
      Script(
        Program(
          sources: [.idle], observers: [.ofRuns], timers: [.at(9)], blocks: [Body()],
          main: [
            .add(.o0, .main), .polls(), .add(.s0, .main), .polls(), .remove(.s0, .main), .add(.t0, .main), .polls(),
            .remove(.t0, .main), .posts(0, .other), .polls(), .posts(0, .common), .polls(), .polls(),
          ]),
        "=finished 1m0 E X 0- =timedOut 1m0 E X 0- =timedOut =finished 1m0 E B0 X 0- =timedOut =finished")),
    Rule(
      "R26",
      "Unsignalled sources and timers that are not due keep a mode alive, as does a timer that is being called.",
      Script(
        Program(timers: [.at(1, .polls(), .asks(.isValid(.t0)))], main: .adds(.t0) + [.polls(), .runs(), .polls()]),
        "=timedOut @1 1m0 T0 =timedOut valid(T0)=yes 0- =finished =finished")),
    Rule(
      "R27",
      "On the main loop the main queue keeps every common mode alive, except in runs nested in its own work.",
      notShown: "Programs do not run on the main thread."),
    Rule(
      "R28",
      "The loop checks whether a mode is empty before a run and after each pass, never before a sleep.",
      Script(
        Program(
          sources: [.does(.invalidate(.s0))], observers: [.ofAll],
          main: .adds(.o0, .s0) + [.signal(0), .runs(), .runs()]
        ),
        "1m0 E BT BS S0 X 0- =finished =finished"),
      Script(
        Program(
          sources: [.idle], observers: [.ofAll, .at(Stages.beforeTimers, .once(.invalidate(.s0)))],
          main: .adds(.o0, .o1, .s0) + [.runs()]),
        "1m0 E BT BT.1 BS BW asleep-for-ever~ AW X 0- =stopped")),
    Rule(
      "R28a",
      "A run of a mode that contains only a block calls it and then sleeps until it times out, is stopped or is woken.",
      Script(
        Program(observers: [.ofAll], blocks: [Body()], main: .adds(.o0) + [.posts(0), .runs()]),
        "1m0 E BT BS B0 BW asleep-for-ever~ AW X 0- =stopped")),
    Rule(
      "R28b",
      "A run whose mode is emptied by an entry observer makes one complete pass, including the sleep.",
      Script(
        Program(
          sources: [.idle], observers: [.ofAll, .at(Stages.entry, .once(.invalidate(.s0)))],
          main: .adds(.o0, .o1, .s0) + [.runs()]),
        "1m0 E E.1 BT BS BW asleep-for-ever~ AW X 0- =stopped")),
    Rule(
      "R28c",
      "Removing the last item of a sleeping loop's mode does not wake the loop; the run finishes at the next wake-up.",
      Script(
        Program(
          sources: [.idle], observers: [.ofWait], main: .adds(.o0, .s0) + [.runs()],
          whileAsleep: [Interruption(at: 2, [.remove(.s0, .main)]), Interruption(at: 5, [.wakeUp])]),
        "1m0 BW @5 AW 0- =finished")),
    Rule(
      "R29",
      "A run finishes after the pass in which its last timer fires.",
      Script(
        Program(observers: [.ofAll], timers: [.at(3)], main: .adds(.o0, .t0) + [.runs()]),
        """
        1m0 E BT BS BW @3 AW T0 X 0- =finished
        """)),
  ]

  private static let questions = [
    Rule(
      "R30",
      "A loop's modes are those that were created; posting a block for the common modes creates one of that name.",
      here: "A loop's modes are those that were created; the common pseudo-mode is never one of them (M11).",
      Script(
        Program(blocks: [Body()], main: [.perform(0, [.common]), .asks(.modes)]),
        coreFoundation: "modes=common+m0", ours: "modes=m0", [.m11])),
    Rule(
      "R31",
      "In every call-out, the current mode is that of the innermost run; outside a run there is none.",
      Script(
        Program(
          sources: [.does(.runs(.other), .asks(.isValid(.s0)))], observers: [.ofRuns], timers: [.at(1)],
          main: .adds(.o0, .s0) + [
            .add(.o0, .other), .add(.t0, .other), .signal(0), .polls(), .asks(.isValid(.s0)),
          ]),
        "1m0 E S0 2m1 E @1 T0 X 1m0 =finished valid(S0)=yes X 0- =timedOut valid(S0)=yes")),
    Rule(
      "R32",
      "The next date of a mode is that of its first timer, even if that timer is being called; a mode without timers "
        + "and the common pseudo-mode have none.",
      Script(
        Program(
          timers: [.at(4), .at(-3, .asks(.nextDate(.main)))],
          main: [
            .asks(.nextDate(.main)), .add(.t0, .main), .asks(.nextDate(.main)), .add(.t1, .main),
            .asks(.nextDate(.main)), .asks(.nextDate(.common)), .runs(), .asks(.nextDate(.main)),
          ]),
        """
        next(m0)=none next(m0)=4 next(m0)=-3 next(common)=none 1m0 T1 next(m0)=-3 @4 T0 0- =finished next(m0)=none
        """)),
    Rule(
      "R33",
      "A loop is waiting only between the observers before and after its wait, and while a polling pass polls.",
      Script(
        Program(
          sources: [.idle], observers: [.ofAll], main: .adds(.o0, .s0) + [.runs()],
          whileAsleep: [Interruption(at: 1, [.asks(.isValid(.s0)), .stop])]),
        "1m0 E BT BS BW @1 valid(S0)=yes~ AW X 0- =stopped")),
  ]
}
