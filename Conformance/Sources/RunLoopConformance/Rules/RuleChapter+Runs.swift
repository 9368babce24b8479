// SPDX-License-Identifier: Apache-2.0

extension RuleChapter {
  static let runs = RuleChapter(title: "Runs", rules: shape + results + limits)

  private static let shape = [
    Rule(
      "R1",
      "A run sets its mode, calls the entry observers, makes passes, calls the exit observers, and restores the "
        + "mode and the state of the enclosing run.",
      Script(
        Program(
          sources: [.does(.runs(.other))], observers: [.ofRuns], timers: [.at(1, .stop), .at(2)],
          main: .adds(.s0, .o0, .t1) + [.add(.o0, .other), .add(.t0, .other), .signal(0), .runs()]),
        "1m0 E S0 2m1 E @1 T0 X 1m0 =stopped @2 T1 asleep-for-ever~ X 0- =stopped")),
    Rule(
      "R2",
      "The phases of a pass have a fixed order: before timers, before sources, blocks, sources, blocks if a source "
        + "performed, main queue, before waiting, wait, after waiting, one class of ready items, blocks, result.",
      Script(
        Program(
          sources: [.does(.posts(1))], observers: [.ofAll], timers: [.at(-1, .posts(2)), .at(1)],
          blocks: [Body(), Body(), Body()],
          main: .adds(.o0, .s0, .t0, .t1) + [.signal(0), .posts(0), .runs()]),
        "1m0 E BT BS B0 S0 B1 T0 B2 BT BS BW @1 AW T1 BT BS BW asleep-for-ever~ AW X 0- =stopped")),
    Rule(
      "R3",
      "A pass that has performed a source, or whose run has a timeout of zero, polls: it calls no observers around its "
        + "wait and still serves ready items.",
      Script(
        Program(
          sources: [.idle], observers: [.ofAll], timers: [.at(0), .at(1)],
          main: .adds(.o0, .s0, .t0) + [.signal(0), .runsForSource, .add(.t1, .main), .work(1), .polls()]),
        "1m0 E BT BS S0 T0 X 0- =handledSource @1 1m0 E BT BS T1 X 0- =timedOut")),
    Rule(
      "R4",
      "The main queue is not checked before the wait in the first pass of a run, nor in the pass after it was served.",
      notShown: "Only the main loop serves the main queue, and programs run on other threads."),
    Rule(
      "R5",
      "Timers fire only after the wait, and the blocks that they post run after them in the same pass.",
      Script(
        Program(
          observers: [.ofAll], timers: [.at(-1, .posts(0))], blocks: [Body()], main: .adds(.o0, .t0) + [.runs()]),
        "1m0 E BT BS BW AW T0 B0 X 0- =finished")),
  ]

  private static let results = [
    Rule(
      "R6",
      "The result is the first that applies: handled source, timed out, stopped, finished.",
      Script(
        Program(
          sources: [.does(.stop), .does(.stop, .stopMode(0), .invalidate(.s1))], blocks: [.once(.stop)],
          main: .adds(.s0) + [.signal(0), .runsForSource]
            + [.posts(0), .polls(), .invalidate(.s0), .add(.s1, .main), .signal(1), .runs(), .posts(0), .runs()]),
        "1m0 S0 0- =handledSource 1m0 B0 0- =timedOut 1m0 S1 0- =stopped =stopped")),
    Rule(
      "R7",
      "A stop is discarded if another result takes precedence.",
      Script(
        Program(
          sources: [.does(.stop)], timers: [.at(2)],
          main: .adds(.s0, .t0) + [.signal(0), .runsForSource, .invalidate(.s0), .runs()]),
        "1m0 S0 0- =handledSource @2 1m0 T0 0- =finished")),
    Rule(
      "R8",
      "A run that returns after a source returns for sources, descriptor sources, ports and the main queue, not for "
        + "timers, blocks, observers or wake-ups.",
      Script(
        Program(
          sources: [.idle], observers: [.at(Stages.afterWaiting)], timers: [.at(1, .wakeUp), .at(2, .signal(0))],
          blocks: [.once(.wakeUp)],
          main: .adds(.s0, .o0, .t0, .t1) + [.posts(0), .runsForSource]),
        "1m0 B0 AW @1 AW T0 @2 AW T1 S0 0- =handledSource")),
    Rule(
      "R9",
      "A run that returns after a source performs at most one source; the others stay signalled.",
      Script(
        Program(
          sources: [.idle, .idle],
          main: .adds(.s0, .s1) + [
            .signal(1), .signal(0), .runsForSource, .asks(.isSignalled(0)), .asks(.isSignalled(1)), .runsForSource,
          ]),
        "1m0 S1 0- =handledSource signalled(S0)=yes signalled(S1)=no 1m0 S0 0- =handledSource")),
    Rule(
      "R10",
      "A pass serves one ready port, so each port costs a complete pass with its observers.",
      here: "A pass serves one class of ready items, in the case of descriptors all that its wait found; a run that "
        + "returns after a source serves one descriptor source or one message (M19).",
      notShown: descriptorReason),
    Rule(
      "R11",
      "The port that became ready first is served first, whatever the order of its source; wake-ups and timers' "
        + "dates are such ports.",
      here: "Classes of ready items take turns, whatever the order of their sources; a wake-up takes no pass from "
        + "them, and timers do not starve (M19).",
      Script(
        Program(
          observers: [.ofWait, .at(Stages.beforeTimers, repeats: false, .once(.elsewhere([.wakeUp, .work(2)])))],
          timers: [.at(1)], main: .adds(.o0, .o1, .t0) + [.runs()]),
        coreFoundation: "1m0 BT.1 @2 BW AW BW AW T0 0- =finished", ours: "1m0 BT.1 @2 BW AW T0 0- =finished", [.m19]),
      Script(
        Program(
          observers: [.ofWait, .at(Stages.beforeTimers, repeats: false, .once(.elsewhere([.work(2), .wakeUp])))],
          timers: [.at(1)], main: .adds(.o0, .o1, .t0) + [.runs()]),
        "1m0 BT.1 @2 BW AW T0 0- =finished")),
  ]

  private static let limits = [
    Rule(
      "R12",
      "A run with a timeout of zero or less makes one polling pass, and returns timed out or handled source; after "
        + "the pass it returns neither stopped nor finished.",
      Script(
        Program(
          sources: [.idle], observers: [.ofAll], blocks: [.once(.stop, .invalidate(.s0))],
          main: .adds(.o0, .s0) + [
            .polls(), .run(.main, .overdue, returnAfterSource: false), .signal(0),
            .run(.main, .overdue, returnAfterSource: true), .posts(0), .polls(), .polls(),
          ]),
        """
        1m0 E BT BS X 0- =timedOut 1m0 E BT BS X 0- =timedOut 1m0 E BT BS S0 X 0- =handledSource 1m0 E BT BS B0 X \
        0- =timedOut =finished
        """)),
    Rule(
      "R13",
      "A timeout that is longer than 504 911 232 s, infinite or not a number never expires.",
      Script(
        Program(
          timers: [
            TimerPlan(
              date: 100_000_000, interval: 100_000_000,
              body: Body([[], [], [], [], [], [.stop]], afterwards: [.invalidate(.t0)]))
          ],
          main: .adds(.t0) + [.runs(), .run(.main, .notANumber, returnAfterSource: false)]),
        """
        @100000000 1m0 T0 @200000000 T0 @300000000 T0 @400000000 T0 @500000000 T0 @600000000 T0 0- =stopped \
        @700000000 1m0 T0 0- =finished
        """)),
    Rule(
      "R14",
      "A run's timeout is measured from its entry on the monotonic clock and checked at the end of a pass, so a long "
        + "call-out overruns it.",
      notShown: "A dispatch timer counts real time, and the programs' time is virtual."),
    Rule(
      "R15",
      "`runUntilStopped()`, like `CFRunLoopRun`, runs the default mode indefinitely, until it is stopped or finished.",
      Script(
        Program(
          sources: [.idle, .idle], observers: [.ofRuns], timers: [.at(1, .stop)],
          main: .adds(.o0, .s0, .t0) + [.signal(0), .runUntilStopped, .invalidate(.s0), .runUntilStopped]),
        "1m0 E S0 @1 T0 X 0- =returned =returned")),
    Rule(
      "R16",
      "A run of the common pseudo-mode finishes at once and is reported.",
      Script(
        Program(
          sources: [.idle], observers: [.ofRuns],
          main: .adds(.o0, .s0) + [.add(.s0, .common), .run(.common, .forever, returnAfterSource: false)]),
        "=finished")),
    Rule(
      "R17",
      "A run of a loop whose thread has ended finishes at once.",
      notShown: "A program ends with its loop's thread."
    ),
    Rule(
      "R18",
      "A run uses the calling thread's loop; only a private function runs the loop of another thread.",
      here: "Only the loop's own thread can run it (M15).",
      notShown: "It requires a run by another thread."),
    Rule(
      "R19",
      "No lock is held during call-outs, except some of sources and of contexts.",
      here: "No lock of the loop, a mode or an item is held during a call-out (M10).",
      notShown: "It requires another thread that is blocked."),
  ]

  static let descriptorReason = "Programs have no descriptors."
}
