// SPDX-License-Identifier: Apache-2.0

extension RuleChapter {
  static let blocks = RuleChapter(title: "Blocks", rules: posting + queueing)

  private static let posting = [
    Rule(
      "R53",
      "The blocks of a mode run in the order in which they were posted, and each is released after its call.",
      Script(
        Program(
          sources: [.idle], blocks: [Body(), Body(), Body()],
          main: .adds(.s0) + [.posts(2), .posts(0, .common), .perform(1, [.other, .main]), .posts(0), .polls()]),
        "1m0 B2 B0 B1 B0 0- =timedOut")),
    Rule(
      "R54",
      "Posting a block does not wake the loop.",
      here: "Posting a block wakes a sleeping loop (M3).",
      Script(
        Program(
          sources: [.idle], observers: [.ofWait], timers: [.at(5, .stop)], blocks: [Body()],
          main: .adds(.o0, .s0, .t0) + [.runs()], whileAsleep: [Interruption(at: 2, [.posts(0)])]),
        coreFoundation: "1m0 BW @5 AW T0 B0 0- =stopped", ours: "1m0 BW @2 AW B0 BW @5 AW T0 0- =stopped", [.m3])),
    Rule(
      "R55",
      "A block for several modes runs once, in the first of them that runs; the common modes are determined then.",
      Script(
        Program(
          sources: [.idle], blocks: [Body()],
          main: .adds(.s0) + [.add(.s0, .other), .perform(0, [.main, .other]), .polls(.other), .polls()]),
        "1m1 B0 0- =timedOut =timedOut"),
      Script(
        Program(
          sources: [.idle], blocks: [.once(.addCommonMode(1)), Body()],
          main: [
            .add(.s0, .other), .posts(1, .common), .polls(.other), .posts(0, .other), .posts(1, .common),
            .polls(.other),
          ]),
        "=timedOut 1m1 B0 B1 B1 0- =timedOut")),
    Rule(
      "R56",
      "A block posted for no mode never runs and stays queued.",
      here: "A block posted for no mode is rejected (M21).",
      Script(
        Program(sources: [.idle], blocks: [Body()], main: .adds(.s0) + [.perform(0, []), .polls(), .asks(.modes)]),
        """
        =timedOut modes=m0
        """)
    ),
    Rule(
      "R57",
      "Blocks of other modes keep their places ahead of blocks that are posted later.",
      Script(
        Program(
          sources: [.idle], blocks: [.once(.posts(2, .other)), Body(), Body()],
          main: .adds(.s0) + [.add(.s0, .other), .posts(0), .posts(1, .other), .polls(), .polls(.other)]),
        "1m0 B0 0- =timedOut 1m1 B1 B2 0- =timedOut")),
  ]

  private static let queueing = [
    Rule(
      "R58",
      "A phase calls the blocks that were queued when it began; blocks posted meanwhile wait for the next phase that "
        + "calls blocks, even if the loop sleeps before it.",
      here: "A phase calls the blocks that were queued when it began; blocks posted meanwhile run in the next phase "
        + "that calls blocks, and the loop does not sleep before it (M1).",
      Script(
        Program(
          sources: [.does(.posts(1))], observers: [.ofAll], timers: [.at(1, .posts(2))],
          blocks: [Body(), Body(), .once(.posts(3)), .once(.stop)],
          main: .adds(.o0, .s0, .t0) + [.signal(0), .posts(0), .runs()]),
        "1m0 E BT BS B0 S0 B1 BT BS BW @1 AW T0 B2 BT BS B3 BW AW X 0- =stopped"),
      Script(
        Program(
          sources: [.idle], observers: [.ofWait], timers: [.at(3)], blocks: [.once(.posts(1)), .once(.stop)],
          main: .adds(.o0, .s0, .t0) + [.posts(0), .runs()]),
        coreFoundation: "1m0 B0 BW @3 AW T0 B1 0- =stopped", ours: "1m0 B0 BW AW B1 0- =stopped", [.m1])),
    Rule(
      "R59",
      "A nested run does not run the remaining blocks of the batch it is nested in, and they do not keep it alive.",
      Script(
        Program(
          sources: [.idle], blocks: [.once(.polls(), .polls(.other)), Body(), Body()],
          main: .adds(.s0) + [.posts(0), .posts(1), .posts(2, .other), .polls(), .polls(.other)]),
        "1m0 B0 =timedOut =finished B1 0- =timedOut 1m1 B2 0- =timedOut")),
    Rule(
      "R60",
      "Blocks can be posted before the first run; blocks still queued when the thread ends are dropped.",
      Script(
        Program(
          sources: [.idle], blocks: [Body(), Body()], main: [.posts(0)] + .adds(.s0) + [.polls(), .posts(1)]),
        "1m0 B0 0- =timedOut")),
    Rule(
      "R61",
      "A main loop whose thread has ended reports its first use, and does nothing.",
      here: "A main loop whose thread has ended rejects everything (M21).",
      notShown: "Programs do not run on the main thread."),
  ]
}
