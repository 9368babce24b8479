// SPDX-License-Identifier: Apache-2.0

extension RuleChapter {
  static let threads = RuleChapter(
    title: "Threads",
    rules: [
      Rule(
        "R113",
        "A thread's loop is created at the first request and is the same until the thread ends; the main loop is "
          + "available from any thread.",
        notShown: otherThreadReason),
      Rule(
        "R114",
        "A loop uses three descriptors and each further mode two; the process is terminated when none are available.",
        here: "A loop owns no descriptor until it watches one (M7).",
        notShown: "Programs do not count descriptors."),
      Rule(
        "R115",
        "When a thread ends, its loop's sources leave with `cancel` call-outs, and its blocks are dropped.",
        here: "When a thread ends, its loop's sources leave with `cancel` call-outs, its timers and observers leave "
          + "(M35), and its blocks are dropped and counted (M14).",
        Script(
          Program(
            sources: [SourcePlan(tellsModes: true), .idle], observers: [.ofRuns], timers: [.at(5)], blocks: [Body()],
            main: .adds(.s0, .s1, .o0, .t0) + [.polls(), .signal(1), .posts(0)]),
          "S0+m0 1m0 E X 0- =timedOut S0-m0")),
      Rule(
        "R116",
        "The end of a thread does not invalidate its loop's items, which can be added to another loop.",
        notShown: otherThreadReason),
      Rule(
        "R117",
        "A loop that is retained after its thread's end keeps its timers and observers, takes items, and is harmless.",
        here: "A loop that is retained after its thread's end rejects all calls and is harmless (M35).",
        notShown: "A program ends with its loop's thread."),
      Rule(
        "R118",
        "A new thread never gets the loop of a thread that has ended, even if the system reuses its id.",
        notShown: otherThreadReason),
      Rule(
        "R119",
        "A loop cannot be over-released, and the main loop is never released.",
        notTested: "The compiler counts references; there is no such function."),
      Rule(
        "R120",
        "All functions except those that run the loop can be called from any thread at any time.",
        Script(
          Program(
            sources: [.idle, .does(.stop)], observers: [.ofWait], timers: [.at(9), .at(2)], blocks: [Body()],
            main: .adds(.s0, .o0, .t0) + [.runs()],
            whileAsleep: [
              Interruption(
                at: 1,
                [
                  .add(.t1, .main), .setDate(0, 4), .add(.s1, .common), .addCommonMode(1), .posts(0),
                  .asks(.contains(.s1, .other)), .asks(.nextDate(.main)), .asks(.modes), .wakeUp,
                ]),
              Interruption(at: 3, [.invalidate(.t0), .signal(1), .remove(.s0, .main), .wakeUp]),
            ]),
          "1m0 BW @1 contains(S1,m1)=yes~ next(m0)=2~ modes=m0+m1~ AW B0 BW @2 AW T1 BW @3 AW S1 0- =stopped")),
    ])

  private static let otherThreadReason = "A program has one loop, on one thread."
}
