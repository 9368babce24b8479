// SPDX-License-Identifier: Apache-2.0

extension RuleChapter {
  static let nestedRuns = RuleChapter(
    title: "Nested runs",
    rules: [
      Rule(
        "R108",
        "Runs nest to any depth, in the same mode or another, each with its own timeout, stop and result.",
        Script(
          Program(
            sources: [.does(.polls())], observers: [.at(Stages.exit, .once(.polls(.other)))],
            timers: [.at(0, .run(.main, .forever, returnAfterSource: true)), .at(1, .signal(0)), .at(2)],
            blocks: [.once(.runs(), .stop)],
            main: .adds(.s0, .t0, .t1) + [.add(.timer(2), .other), .add(.o0, .other), .posts(0, .other), .runs(.other)]),
          """
          1m1 B0 2m0 T0 @1 3m0 T1 S0 =timedOut 2m0 =handledSource asleep-for-ever~ 1m1 =stopped X =timedOut 0- \
          =stopped
          """)),
      Rule(
        "R109",
        "A nested run skips the timer and observer that are being called, the blocks of the enclosing batch, and, "
          + "inside the main queue's work, the main queue.",
        Script(
          Program(
            sources: [.idle], observers: [.at(Stages.beforeTimers, Body([[.posts(0)]])), .at(Stages.beforeTimers)],
            timers: [TimerPlan(date: 0, interval: 1, body: Body([[.work(2), .polls()]]))],
            blocks: [.once(.posts(2), .polls()), Body(), Body()],
            main: .adds(.s0, .o0, .o1, .t0) + [.posts(0), .posts(1), .polls(), .polls()]),
          """
          1m0 BT BT.1 B0 2m0 BT BT.1 B2 T0 @2 3m0 BT BT.1 2m0 =timedOut 1m0 =timedOut B1 B0 0- =timedOut 1m0 BT \
          BT.1 0- =timedOut
          """)),
    ])

  static let mainQueue = RuleChapter(
    title: "Main queue",
    rules: [
      Rule(
        "R110",
        "The main queue is served only by the main loop, in common modes, and not inside its own work.",
        notShown: mainReason),
      Rule(
        "R111",
        "One call runs all work that was queued before it, and counts as a source.",
        notShown: mainReason),
      Rule(
        "R112",
        "Work of the main actor and of the main queue runs in any run of the main loop in a common mode.",
        notShown: mainReason),
    ])

  private static let mainReason = "Programs do not run on the main thread."
}
