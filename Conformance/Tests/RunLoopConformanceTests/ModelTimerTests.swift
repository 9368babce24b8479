// SPDX-License-Identifier: Apache-2.0

import RunLoopConformance
import TestRules
import Testing

@Suite("The model: timers") struct ModelTimerTests {
  private func run(_ timers: [TimerPlan], _ actions: Action..., then last: Action = .runDefault) -> Program {
    Program(timers: timers, main: timers.indices.map { .add(.timer($0), 0) } + actions + [last])
  }

  @Test(
    "timers fire by their dates, those of one date as they were inserted; a past date counts from when it was set",
    .rule(.r93))
  func order() {
    expectRule(
      run(
        [TimerPlan(date: 2), TimerPlan(date: -1), TimerPlan(date: 0), TimerPlan(date: -5), TimerPlan(date: 2)],
        .setDate(0, 2)),
      coreFoundation: "T1 T2 T3 T4 T0 =finished", ours: "T1 T2 T3 T4 T0 =finished")
  }

  @Test(
    "a due timer that an earlier one moves, removes or ends does not fire; one that becomes due meanwhile does",
    .rule(.r94))
  func changedMeanwhile() {
    let change = Body.once(
      .setDate(1, 9), .remove(.timer(2), 0), .invalidate(.timer(3)), .setDate(4, 2), .work(2))
    expectRule(
      run([TimerPlan(date: 1, body: change)] + (1...4).map { _ in TimerPlan(date: 1) }), gives: "T0 T4 T1 =finished")
  }

  @Test("a due timer that leaves this mode only still fires", .rule(.r94))
  func leavesThisMode() {
    expectRule(
      run([TimerPlan(date: 0, body: .once(.remove(.timer(1), 0))), TimerPlan(date: 0)], .add(.timer(1), 1)),
      gives: "T0 T1 =finished")
  }

  @Test(
    "a timer that fires once is valid and contained in its call, and gone after it, whatever date it was given",
    .rule(.r96))
  func oneShot() {
    let questions: [Action] = [.ask(.isValid(.timer(0))), .ask(.contains(.timer(0), .mode(0)))]
    expectRule(
      run([TimerPlan(date: 1, body: Body([questions + [.setDate(0, 5)]])), TimerPlan(date: 7, body: Body([questions]))]
      ),
      gives: "T0 valid(T0)=yes contains(T0,m0)=yes T1 valid(T0)=no contains(T0,m0)=no =finished")
  }

  @Test(
    "a repeating timer keeps its phase and skips what it missed; its date moves on after the call", .rule(.r97, .r98))
  func phase() {
    let ask = Action.ask(.date(0))
    let program = run([TimerPlan(date: 1, interval: 2, body: Body([[.work(5), ask], [ask, .invalidate(.timer(0))]]))])
    #expect("\(ReferenceModel().run(program))" == "@1 1m0 T0 @6 date(T0)=1 @7 T0 date(T0)=7 0- =finished")
    expectRule(program, gives: "T0 date(T0)=1 T0 date(T0)=7 =finished")
  }

  @Test("a later date that is set in the call counts, and moves the phase", .rule(.r99))
  func movedInCall() {
    let program = run([TimerPlan(date: 1, interval: 2, body: Body([[.setDate(0, 4)], [], [.stop]]))])
    #expect("\(ReferenceModel().run(program))" == "@1 1m0 T0 @4 T0 @6 T0 0- =stopped")
    expectRule(program, gives: "T0 T0 T0 =stopped")
  }

  @Test("a past date after a while in the call lets the timer fire again at once", .rule(.r99))
  func pastInCall() {
    let program = run([TimerPlan(date: 1, interval: 5, body: Body([[.work(1), .setDate(0, 0)], [.stop]]))])
    #expect("\(ReferenceModel().run(program))" == "@1 1m0 T0 @2 T0 0- =stopped")
    expectRule(program, gives: "T0 T0 =stopped")
  }

  @Test("a timer that is moved in its call has its place from then, not from the call's end", .rule(.r93, .r99))
  func placeOfMoved() {
    expectRule(
      run([
        TimerPlan(date: 0), TimerPlan(date: 0, interval: 9, body: Body([[.setDate(1, 2), .setDate(2, 2)], [.stop]])),
        TimerPlan(date: 8),
      ]),
      gives: "T0 T1 T1 T2 =stopped")
  }

  @Test("a nested run fires the other due timers, which the pass around it then skips", .rule(.r99a))
  func nested() {
    expectRule(
      run([TimerPlan(date: 1, body: .once(.pollDefault)), TimerPlan(date: 1), TimerPlan(date: 2)]),
      gives: "T0 T1 =timedOut T2 =finished")
  }

  @Test("a timer in two modes fires once for a date, in the mode that runs", .rule(.r99b))
  func twoModes() {
    let program = Program(
      timers: [TimerPlan(date: 1, interval: 2, body: Body([[.stop], [.stop]]))],
      main: [.add(.timer(0), 0), .add(.timer(0), 0), .add(.timer(0), 1), .runDefault, .run(1), .ask(.date(0))])
    expectRule(program, gives: "T0 =stopped T0 =stopped date(T0)=5")
  }

  @Test("a timer that is removed in its call is valid, has its next date, and can be added again", .rule(.r99d))
  func removedInCall() {
    let program = Program(
      timers: [TimerPlan(date: 1, interval: 2, body: Body([[.remove(.timer(0), 0)], [.stop]]))],
      main: [.add(.timer(0), 0), .runDefault, .ask(.date(0)), .add(.timer(0), 0), .runDefault])
    expectRule(program, gives: "T0 =finished date(T0)=3 T0 =stopped")
  }

  @Test("a timer that is removed during the sleep does not fire; its date may wake the loop", .rule(.r99e, .m20))
  func removedWhileAsleep() {
    let program = Program(
      observers: [.watcher], timers: [TimerPlan(date: 2), TimerPlan(date: 4)],
      main: [.watch, .add(.timer(0), 0), .add(.timer(1), 0), .runDefault],
      whileAsleep: [Interruption(at: 1, [.remove(.timer(0), 0)])])
    expectRule(program, gives: "E BT BS BW AW T1 X =finished")
  }

  @Test("the second of two timers that fire for the last time leaves a wake-up behind", .rule(.m20))
  func ghostOfTwo() {
    let program = Program(
      sources: [SourcePlan()], observers: [.watcher], timers: [TimerPlan(date: 1), TimerPlan(date: 1)],
      main: [.watch, .add(.source(0), 0), .add(.timer(0), 0), .add(.timer(1), 0), .runDefault])
    expectDifference(
      .m20, program,
      coreFoundation: "E BT BS BW AW T0 T1 BT BS BW AW BT BS BW asleep-for-ever AW X =stopped",
      ours: "E BT BS BW AW T0 T1 BT BS BW asleep-for-ever AW X =stopped")
  }

  @Test("a timer in two modes that is moved in its call is late in the other mode, or not", .rule(.m19))
  func lateInOtherMode() {
    let program = Program(
      timers: [
        TimerPlan(date: 1, interval: 9, body: Body([[.setDate(0, 3), .stop], [.stop]])),
        TimerPlan(date: 8, body: .once(.stop)),
      ],
      main: [.add(.timer(0), 0), .add(.timer(0), 1), .add(.timer(1), 1), .runDefault, .run(1)])
    #expect("\(ReferenceModel().run(program))" == "@1 1m0 T0 0- =stopped @8 1m1 T0 T1 0- =stopped")
    #expect("\(ReferenceModel.ours.run(program))" == "@1 1m0 T0 0- =stopped @3 1m1 T0 0- =stopped")
    expectDifference(
      .m19, program, coreFoundation: "T0 =stopped T0 T1 =stopped", ours: "T0 =stopped T0 =stopped")
  }
}
