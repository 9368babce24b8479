// SPDX-License-Identifier: Apache-2.0

import RunLoopConformance
import TestRules
import Testing

/// Runs, their passes and results.
@Suite("The model: runs") struct ModelRunTests {
  @Test(
    "a timer fires after the wait, and the pass that fires the last one finishes the run", .rule(.r1, .r2, .r5, .r29))
  func oneTimer() {
    expectRule(
      Program(observers: [.watcher], timers: [TimerPlan(date: 3)], main: [.watch, .add(.timer(0), 0), .runDefault]),
      gives: "E BT BS BW AW T0 X =finished")
  }

  @Test("a pass has its steps in one order", .rule(.r2, .r5, .r58))
  func steps() {
    let program = Program(
      sources: [SourcePlan(body: .once(.post(1)))], observers: [.watcher],
      timers: [TimerPlan(date: -1, body: .once(.post(2)))], blocks: [Body(), Body(), .once(.stop)],
      main: [.watch, .add(.source(0), 0), .add(.timer(0), 0), .signal(0), .post(0), .runDefault])
    // The pass polls after the source, and still serves the timer (R3).
    expectRule(program, gives: "E BT BS B0 S0 B1 T0 B2 X =stopped")
  }

  @Test("a run without time makes one pass that does not wait, and times out", .rule(.r3, .r12))
  func poll() {
    expectRule(
      Program(
        sources: [SourcePlan()], observers: [.watcher], timers: [TimerPlan(date: 0, body: .once(.stop))],
        main: [.watch, .add(.source(0), 0), .add(.timer(0), 0), .pollDefault]),
      gives: "E BT BS T0 X =timedOut")
  }

  @Test("a run that returns after a source performs one and leaves the others signalled", .rule(.r6, .r8, .r9))
  func returnsAfterSource() {
    let program = Program(
      sources: [SourcePlan(), SourcePlan()], observers: [.watcher],
      main: [
        .watch, .add(.source(0), 0), .add(.source(1), 0), .signal(1), .signal(0), .runForSource, .ask(.isSignalled(0)),
        .runForSource,
      ])
    expectRule(
      program, gives: "E BT BS S1 X =handledSource signalled(S0)=yes E BT BS S0 X =handledSource")
  }

  @Test("a handled source counts before a stop, which is lost", .rule(.r6, .r7))
  func stopLoses() {
    let program = Program(
      sources: [SourcePlan(body: .once(.stop))], observers: [.watcher],
      timers: [TimerPlan(date: 1, body: .once(.stop))],
      main: [
        .watch, .add(.source(0), 0), .add(.timer(0), 0), .signal(0), .runForSource, .runDefault,
      ])
    expectRule(program, gives: "E BT BS S0 X =handledSource E BT BS BW AW T0 X =stopped")
  }

  @Test("a run without time is timed out before it is stopped or finished", .rule(.r6, .r12))
  func timedOutFirst() {
    expectRule(
      Program(observers: [.watcher], blocks: [.once(.stop)], main: [.watch, .post(0), .pollDefault]),
      gives: "E BT BS B0 X =timedOut")
  }

  @Test("a timer, a block and a wake-up do not end a run that returns after a source", .rule(.r8))
  func notHandled() {
    let program = Program(
      sources: [SourcePlan()], observers: [.watcher],
      timers: [TimerPlan(date: 1), TimerPlan(date: 2, body: .once(.signal(0)))],
      blocks: [.once(.wakeUp)],
      main: [.watch, .add(.source(0), 0), .add(.timer(0), 0), .add(.timer(1), 0), .post(0), .runForSource])
    expectRule(
      program, gives: "E BT BS B0 BW AW BT BS BW AW T0 BT BS BW AW T1 BT BS S0 X =handledSource")
  }

  @Test(
    "the common pseudo-mode, an unknown mode and an empty one are finished at once, and no mode is made",
    .rule(.r16, .r24))
  func notEntered() {
    expectRule(
      Program(
        observers: [.watcher],
        main: [
          .watch, .run(.common, .forever, returnAfterSource: false), .run(7), .runDefault, .ask(.modes),
        ]),
      gives: "=finished =finished =finished modes=m0")
  }

  @Test(
    "items, blocks and stops make modes; asking, removing and running make none; modes stay", .rule(.r21, .r22, .r23))
  func modes() {
    let program = Program(
      sources: [SourcePlan()], blocks: [Body()],
      main: [
        .ask(.contains(.source(0), .mode(1))), .remove(.source(0), 2), .run(3), .addCommonMode(4),
        .ask(.nextDate(.mode(5))),
        .ask(.modes), .add(.source(0), 6), .perform(0, [.mode(7), .mode(8)]), .stopMode(9), .remove(.source(0), 6),
        .ask(.modes),
      ])
    expectRule(
      program,
      gives: "contains(S0,m1)=no =finished next(m5)=none modes=m0 modes=m0+m6+m7+m8+m9")
  }

  @Test("a timer that is being called for the last time still counts in a nested run", .rule(.r25, .r26))
  func firingCounts() {
    expectRule(
      Program(
        observers: [.watcher], timers: [TimerPlan(date: 1, body: .once(.pollDefault))],
        main: [.watch, .add(.timer(0), 0), .runDefault]),
      gives: "E BT BS BW AW T0 E BT BS X =timedOut X =finished")
  }

  @Test("a mode with nothing but a block runs it, and sleeps", .rule(.r28a))
  func blockOnly() {
    expectRule(
      Program(observers: [.watcher], blocks: [Body()], main: [.watch, .post(0), .runDefault]),
      gives: "E BT BS B0 BW asleep-for-ever AW X =stopped")
  }

  @Test("a mode that an entry observer empties makes one pass, sleep and all", .rule(.r28b))
  func emptiedAtEntry() {
    expectRule(
      Program(
        sources: [SourcePlan()],
        observers: [.watcher, .at(Stages.entry, .once(.remove(.source(0), 0)))],
        main: [.watch, .add(.observer(1), 0), .add(.source(0), 0), .runDefault]),
      gives: "E E.1 BT BS BW asleep-for-ever AW X =stopped")
  }

  @Test("the mode is that of the innermost run, and the loop waits only in its sleep", .rule(.r31, .r33))
  func state() {
    let program = Program(
      sources: [SourcePlan(body: .once(.poll(1)))], observers: [.watcher],
      main: [.add(.observer(0), 1), .add(.source(0), 0), .add(.source(0), 1), .signal(0), .runDefault],
      whileAsleep: [Interruption(at: 2, [.ask(.isSignalled(0)), .stop])])
    let log = ReferenceModel().run(program)
    #expect(
      "\(log)" == "1m0 S0 2m1 E BT BS X 1m0 =timedOut @2 signalled(S0)=no~ 0- =stopped")
    expectRule(program, gives: "S0 E BT BS X =timedOut signalled(S0)=no =stopped")
  }

  @Test("the next date is that of the first timer, also of one that is being called, as it was set", .rule(.r32))
  func nextDate() {
    let ask = Action.ask(.nextDate(.mode(0)))
    expectRule(
      Program(
        timers: [TimerPlan(date: 4), TimerPlan(date: -3, body: .once(ask))],
        main: [ask, .add(.timer(0), 0), ask, .add(.timer(1), 0), ask, .ask(.nextDate(.common)), .runDefault, ask]),
      gives: "next(m0)=none next(m0)=4 next(m0)=-3 next(common)=none T1 next(m0)=-3 T0 =finished next(m0)=none")
  }

  @Test("a run nested as deep as can be is not begun", .rule(.r108))
  func deepest() {
    let program = Program(
      sources: [SourcePlan(body: .always(.signal(0), .pollDefault))],
      main: [.add(.source(0), 0), .signal(0), .pollDefault])
    expectRule(
      program,
      gives: Array(repeating: "S0", count: 8).joined(separator: " ") + " "
        + Array(repeating: "=timedOut", count: 8).joined(separator: " "))
  }
}
