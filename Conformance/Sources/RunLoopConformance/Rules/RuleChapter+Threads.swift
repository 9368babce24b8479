// SPDX-License-Identifier: Apache-2.0

extension RuleChapter {
  static let threads = RuleChapter(
    title: "Threads",
    rules: [
      Rule(
        "R113", "A thread's loop is made at its first request and stays the same; any thread gets the main loop.",
        notShown: otherThreadReason, test: "a thread has no loop before it asks for one, and then the same one always"),
      Rule(
        "R114", "A loop costs three descriptors, each further mode two; the process dies for want of them.",
        notShown: "Programs do not count descriptors; ours opens none until it watches one (M7).",
        test: "the last source of a mode releases its epoll set; the loop keeps its counter as long as it lives"),
      Rule(
        "R115", "At the end of a thread its loop's sources leave, with cancel call-outs; its blocks are dropped.",
        Script(
          Program(
            sources: [SourcePlan(tellsModes: true), .idle], observers: [.ofRuns], timers: [.at(5)], blocks: [Body()],
            main: .adds(.s0, .s1, .o0, .t0) + [.polls(), .signal(1), .posts(0)]),
          "S0+m0 1m0 E X 0- =timedOut S0-m0")),
      Rule(
        "R116", "The end of a thread invalidates nothing; the items may join another loop.",
        notShown: otherThreadReason,
        test: "timers and observers are not called and stay valid, and another loop may have them"),
      Rule(
        "R117", "A loop that is kept beyond its thread does no harm.",
        notShown: "A program is at its end when its loop's thread is.",
        test: "a loop that is kept after its thread rejects all work, counts it, and is otherwise harmless"),
      Rule(
        "R118", "The ids of threads are used again.",
        notShown: otherThreadReason,
        test: "threads that follow each other, and so have the same ids, have loops of their own"),
      Rule(
        "R119", "Releasing a loop too often traps.",
        notShown: "Programs count no references, and ours are counted by the compiler."),
      Rule(
        "R120", "Everything but running may be called from any thread.",
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
