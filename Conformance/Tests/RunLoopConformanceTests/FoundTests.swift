// SPDX-License-Identifier: Apache-2.0

import RunLoopConformance
import TestRules
import Testing

/// The smallest programs in which a loop was wrong, as `conformance` printed them.
@Suite("Programs that have found a bug")
struct FoundTests {
  @Test("a due timer moved to a date that has passed since fires in the same pass", .rule(.r94))
  func movedAndDueByThen() {
    let program = Program(
      timers: [
        TimerPlan(date: 0, interval: 1), TimerPlan(date: 1, body: Body([[.setDate(0, 2), .work(1)]])),
        TimerPlan(date: 1, body: Body(afterwards: [.stop])),
      ],
      main: [
        .add(.timer(2), .mode(0)), .add(.timer(0), .mode(0)), .add(.timer(1), .mode(0)),
        .run(.mode(0), .forever, returnAfterSource: false),
      ])
    expectLogs(of: program, "1m0 T0 @1 T2 T1 @2 T0 0- =stopped")
  }

  @Test("a repeating timer invalidated in its call keeps the date for which it was called", .rule(.r99c, .m27))
  func dateOfEnded() {
    let program = Program(
      timers: [TimerPlan(date: 0, interval: 1, body: Body([[.invalidate(.timer(0))]]))],
      main: [.add(.timer(0), .mode(0)), .run(.mode(0), .poll, returnAfterSource: false), .ask(.date(0))])
    expectLogs(
      of: program,
      coreFoundation: "1m0 T0 0- =timedOut date(T0)=none",
      ours: "1m0 T0 0- =timedOut date(T0)=0")
  }

  @Test("a timer's order is determined when its date is set, even in its own call", .rule(.r93, .r99))
  func turnOfOneBeingCalled() {
    let program = Program(
      timers: [TimerPlan(date: 0, interval: 1, body: Body([[.setDate(0, 5), .setDate(1, 5)]])), TimerPlan(date: 7)],
      main: [
        .add(.timer(0), .mode(0)), .add(.timer(1), .mode(0)), .run(.mode(0), .poll, returnAfterSource: false),
        .work(5), .run(.mode(0), .poll, returnAfterSource: false),
      ])
    expectLogs(of: program, "1m0 T0 0- =timedOut @5 1m0 T0 T1 0- =timedOut")
  }

  @Test("if several timers are being called, the next date is that of the first one in order", .rule(.r32))
  func nextDateOfSeveralBeingCalled() {
    let nested = Body([[.run(.mode(0), .poll, returnAfterSource: false), .ask(.nextDate(.mode(0)))]])
    let program = Program(
      timers: [
        TimerPlan(date: -3, body: nested), TimerPlan(date: -1, body: nested), TimerPlan(date: -2, body: nested),
      ],
      main: [
        .add(.timer(0), .mode(0)), .add(.timer(1), .mode(0)), .add(.timer(2), .mode(0)),
        .run(.mode(0), .poll, returnAfterSource: false),
      ])
    expectLogs(
      of: program,
      """
      1m0 T0 2m0 T1 3m0 T2 =timedOut next(m0)=-3 2m0 =timedOut next(m0)=-3 1m0 =timedOut next(m0)=-3 0- =timedOut
      """)
  }

  @Test("a block that lets its mode become common lets common blocks behind it run at once", .rule(.r55, .r58))
  func commonDuringBlocks() {
    let program = Program(
      observers: [
        ObserverPlan(
          activities: 4,
          body: Body([[.perform(0, [.common]), .run(.mode(1), .poll, returnAfterSource: false)]]))
      ],
      timers: [TimerPlan(date: 0), TimerPlan(date: 1)],
      blocks: [Body([[.run(.mode(0), .forever, returnAfterSource: false)]])],
      main: [
        .add(.timer(1), .mode(0)), .add(.observer(0), .mode(0)), .add(.timer(0), .mode(1)), .perform(0, [.mode(1)]),
        .run(.mode(0), .poll, returnAfterSource: false),
      ],
      whileAsleep: [Interruption(at: 0, [.addCommonMode(1)])])
    expectLogs(of: program, "1m0 BS 2m1 B0 @1 3m0 T1 2m1 =finished B0 T0 1m0 =timedOut 0- =timedOut")
  }
}
