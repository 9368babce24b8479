// SPDX-License-Identifier: Apache-2.0

extension RuleChapter {
  static let timers = RuleChapter(title: "Timers", rules: dates + firing + belongings)

  private static let dates = [
    Rule(
      "R92",
      "Dates are on the monotonic clock; a date of the wall clock is converted when it is set.",
      notShown: "The virtual clocks do not diverge."),
    Rule(
      "R93",
      "Timers fire in the order of their dates, and those of equal dates as they were added or moved; a past date "
        + "counts as the time at which it was set, but is returned unchanged.",
      Script(
        Program(
          timers: [.at(2), .at(-1), .at(0), .at(-5), .at(2)],
          main: .adds(.t0, .t1, .timer(2), .timer(3), .timer(4)) + [.setDate(0, 2), .asks(.date(3)), .runs()]),
        "date(T3)=-5 1m0 T1 T2 T3 @2 T4 T0 0- =finished")),
    Rule(
      "R94",
      "The list of due timers is fixed once; a timer on it is not called if it has become invalid, was moved to a "
        + "later date, was fired by a nested run, or is in no mode of the loop.",
      Script(
        Program(
          timers: [
            .at(1, .setDate(1, 9), .remove(.timer(2), .main), .invalidate(.timer(3)), .setDate(4, 2), .work(2)),
            .at(1), .at(1), .at(1), .at(1),
          ],
          main: .adds(.t0, .t1, .timer(2), .timer(3), .timer(4)) + [.runs()]),
        "@1 1m0 T0 @3 T4 @9 T1 0- =finished"),
      Script(
        Program(
          observers: [.ofWait], timers: [.at(1, .remove(.t1, .main), .setDate(2, 0)), .at(1), .at(8)],
          main: .adds(.o0, .t0, .t1, .timer(2)) + [.add(.t1, .other), .runs()]),
        "1m0 BW @1 AW T0 T1 BW AW T2 0- =finished")),
    Rule(
      "R95",
      "A timer with an interval of zero or less does not repeat; a date more than 504 911 232 s ahead is limited to "
        + "that.",
      here: "A timer with an interval of zero or less does not repeat; a date is not limited (M33).",
      Script(
        Program(
          timers: [TimerPlan(date: 1, interval: -1), TimerPlan(date: 1, interval: 0)],
          main: .adds(.t0, .t1) + [.runs(), .asks(.isValid(.t0)), .asks(.isValid(.t1))]),
        "@1 1m0 T0 T1 0- =finished valid(T0)=no valid(T1)=no"),
      Script(
        Program(timers: [.at(700_000_000)], main: .adds(.t0) + [.asks(.date(0)), .runs()]),
        coreFoundation: "date(T0)=700000000 @504911232 1m0 T0 0- =finished",
        ours: "date(T0)=700000000 @700000000 1m0 T0 0- =finished", [.m33])),
    Rule(
      "R96",
      "A one-shot timer is valid during its call-out and invalid afterwards, even if the call-out sets a date.",
      Script(
        Program(
          timers: [.at(1, .asks(.isValid(.t0)), .asks(.contains(.t0, .main)), .setDate(0, 5))],
          main: .adds(.t0) + [.runs(), .asks(.isValid(.t0)), .asks(.contains(.t0, .main))]),
        "@1 1m0 T0 valid(T0)=yes contains(T0,m0)=yes 0- =finished valid(T0)=no contains(T0,m0)=no")),
    Rule(
      "R97",
      "A repeating timer keeps its phase; missed dates are skipped.",
      Script(
        Program(
          timers: [TimerPlan(date: 1, interval: 2, body: Body([[.work(5)], [], [.stop]]))],
          main: .adds(.t0) + [.runs(), .asks(.date(0))]),
        "@1 1m0 T0 @7 T0 @9 T0 0- =stopped date(T0)=11")),
    Rule(
      "R98",
      "During its call-out, a timer still has the date for which it fires.",
      Script(
        Program(
          timers: [TimerPlan(date: 1, interval: 2, body: .always(.asks(.date(0)), .stop))],
          main: .adds(.t0) + [.runs(), .asks(.date(0))]),
        "@1 1m0 T0 date(T0)=1 0- =stopped date(T0)=3")),
    Rule(
      "R99",
      "A date that is set in the call-out is kept and starts a new phase if it is later than the one for which the "
        + "timer fires, and a past one counts as the time at which it was set; an earlier one is ignored. An invalid "
        + "timer has no date.",
      here: "A date that is set in the call-out is kept and starts a new phase; after a past one, the timer fires "
        + "again in the next pass (M30). An invalid timer keeps its date (M27).",
      Script(
        Program(
          timers: [TimerPlan(date: 1, interval: 2, body: Body([[.setDate(0, 4)], [], [.stop]]))],
          main: .adds(.t0) + [.runs()]),
        "@1 1m0 T0 @4 T0 @6 T0 0- =stopped"),
      Script(
        Program(
          observers: [.ofWait],
          timers: [TimerPlan(date: 1, interval: 5, body: Body([[.work(1), .setDate(0, 0)], [.stop]]))],
          main: .adds(.o0, .t0) + [.runs()]),
        "1m0 BW @1 AW T0 @2 BW AW T0 0- =stopped"),
      Script(
        Program(
          timers: [TimerPlan(date: 2, interval: 3, body: Body([[.setDate(0, 1)], [.asks(.date(0)), .stop]]))],
          main: .adds(.t0) + [.runs()]),
        coreFoundation: "@2 1m0 T0 @5 T0 date(T0)=5 0- =stopped",
        ours: "@2 1m0 T0 T0 date(T0)=1 0- =stopped", [.m30]),
      Script(
        Program(timers: [.at(5)], main: [.setDate(0, 7), .asks(.date(0)), .invalidate(.t0), .asks(.date(0))]),
        coreFoundation: "date(T0)=7 date(T0)=none", ours: "date(T0)=7 date(T0)=7", [.m27])),
  ]

  private static let firing = [
    Rule(
      "R99a",
      "A timer does not fire within its own call-out; other due timers fire once in nested runs.",
      Script(
        Program(
          timers: [TimerPlan(date: 1, interval: 1, body: Body([[.work(3), .polls()], [.stop]])), .at(1), .at(2)],
          main: .adds(.t0, .t1, .timer(2)) + [.runs()]),
        "@1 1m0 T0 @4 2m0 T1 T2 1m0 =timedOut @5 T0 0- =stopped")),
    Rule(
      "R99b",
      "A timer belongs to one loop at a time, in any number of its modes, once in each, and fires once for each date.",
      Script(
        Program(
          timers: [TimerPlan(date: 1, interval: 2, body: .always(.stop))],
          main: .adds(.t0, .t0) + [.add(.t0, .other), .runs(), .runs(.other), .asks(.date(0))]),
        "@1 1m0 T0 0- =stopped @3 1m1 T0 0- =stopped date(T0)=5")),
    Rule(
      "R99c",
      "Invalidating a timer is permanent, removes it from all modes and common items, and clears its date.",
      here: "Invalidating a timer is permanent, removes it from all modes and common items, keeps its date (M27), and "
        + "releases its block when no call-out runs (M22).",
      Script(
        Program(
          timers: [TimerPlan(date: 1, interval: 1, body: .once(.invalidate(.t0)))],
          main: .adds(.t0) + [
            .add(.t0, .common), .runs(), .asks(.isValid(.t0)), .asks(.contains(.t0, .common)), .asks(.date(0)),
            .setDate(0, 9), .add(.t0, .main), .runs(),
          ]),
        coreFoundation: "@1 1m0 T0 0- =finished valid(T0)=no contains(T0,common)=no date(T0)=none =finished",
        ours: "@1 1m0 T0 0- =finished valid(T0)=no contains(T0,common)=no date(T0)=1 =finished", [.m27])),
    Rule(
      "R99d",
      "A timer that is removed in its own call-out stays valid and keeps its next date, and can be added to the same "
        + "or another loop.",
      Script(
        Program(
          timers: [TimerPlan(date: 1, interval: 2, body: Body([[.remove(.t0, .main)], [.stop]]))],
          main: .adds(.t0) + [.runs(), .asks(.isValid(.t0)), .asks(.date(0)), .add(.t0, .other), .runs(.other)]),
        "@1 1m0 T0 0- =finished valid(T0)=yes date(T0)=3 @3 1m1 T0 0- =stopped")),
    Rule(
      "R99e",
      "A timer that is removed or invalidated during the sleep does not fire.",
      Script(
        Program(
          sources: [.idle], timers: [.at(2), .at(3), .at(4, .stop)],
          main: .adds(.s0, .t0, .t1, .timer(2)) + [.runs()],
          whileAsleep: [Interruption(at: 1, [.remove(.t0, .main), .invalidate(.t1)])]),
        "@4 1m0 T2 0- =stopped")),
  ]

  private static let belongings = [
    Rule(
      "R99f",
      "A tolerance has no effect on Linux.",
      here: "The loop sleeps until the first tolerance of a timer ends, and then fires all due timers; a repeating "
        + "timer's tolerance is limited to half its interval, and its phase is kept (M8).",
      notShown: "Programs have no tolerances."),
    Rule(
      "R99g",
      "A loop contains a timer, also as a common item, only if the timer is in one of its modes.",
      here: "A loop contains a timer or an observer, also as a common item, only if the item is in one of its modes "
        + "(M9).",
      Script(
        Program(
          timers: [.at(5)],
          main: [
            .add(.t0, .common), .asks(.contains(.t0, .common)), .remove(.t0, .main), .asks(.contains(.t0, .common)),
          ]),
        "contains(T0,common)=yes contains(T0,common)=no")),
  ]
}
