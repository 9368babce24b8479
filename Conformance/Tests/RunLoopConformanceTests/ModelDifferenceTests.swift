// SPDX-License-Identifier: Apache-2.0

import RunLoopConformance
import TestRules
import Testing

/// Each difference, with a small program that demonstrates it.
@Suite("The model: differences") struct ModelDifferenceTests {
  @Test("a block that a block posts: after the sleep, or without one", .rule(.m1, .r58))
  func blockOfBlock() {
    let program = Program(
      sources: [SourcePlan()], observers: [.watcher], blocks: [.once(.post(1)), .once(.stop)],
      main: [.watch, .add(.source(0), 0), .post(0), .runDefault])
    expectDifference(
      .m1, program,
      coreFoundation: "E BT BS B0 BW asleep-for-ever AW B1 X =stopped",
      ours: "E BT BS B0 BW AW B1 X =stopped")
  }

  @Test("a source signalled before the wait: asleep on top of it, or not", .rule(.m1))
  func signalBeforeWaiting() {
    let program = Program(
      sources: [SourcePlan(body: .once(.stop))],
      observers: [.watcher, .at(Stages.beforeWaiting, repeats: false, .once(.signal(0)))],
      main: [.watch, .add(.observer(1), 0), .add(.source(0), 0), .runDefault])
    expectDifference(
      .m1, program,
      coreFoundation: "E BT BS BW BW.1 asleep-for-ever AW X =stopped",
      ours: "E BT BS BW BW.1 AW BT BS S0 X =stopped")
  }

  @Test("a run nested before the wait takes the wake-up, or leaves it", .rule(.m2, .r49))
  func nestedBeforeWaiting() {
    let nest = Action.elsewhere([.wakeUp])
    let program = Program(
      sources: [SourcePlan()],
      observers: [.watcher, .at(Stages.beforeWaiting, repeats: false, .once(nest, .poll(1)))],
      main: [.watch, .add(.observer(1), 0), .add(.source(0), 0), .add(.source(0), 1), .runDefault])
    expectDifference(
      .m2, program,
      coreFoundation: "E BT BS BW BW.1 =timedOut asleep-for-ever AW X =stopped",
      ours: "E BT BS BW BW.1 =timedOut AW BT BS BW asleep-for-ever AW X =stopped")
  }

  @Test("a block posted to a sleeping loop: asleep, or run", .rule(.m3, .r54))
  func postWhileAsleep() {
    let program = Program(
      sources: [SourcePlan()], observers: [.watcher], blocks: [.once(.stop)],
      main: [.watch, .add(.source(0), 0), .runDefault], whileAsleep: [Interruption(at: 3, [.post(0)])])
    expectDifference(
      .m3, program,
      coreFoundation: "E BT BS BW asleep-for-ever AW B0 X =stopped",
      ours: "E BT BS BW AW B0 X =stopped")
  }

  @Test("the last source decides whether one was handled, or any", .rule(.m4, .r69))
  func handled() {
    let program = Program(
      sources: [SourcePlan(body: .once(.invalidate(.source(1)))), SourcePlan(order: 1)], observers: [.watcher],
      main: [.watch, .add(.source(0), 0), .add(.source(1), 0), .signal(0), .signal(1), .runDefault])
    expectDifference(
      .m4, program,
      coreFoundation: "E BT BS S0 BW asleep-for-ever AW X =stopped",
      ours: "E BT BS S0 BT BS BW asleep-for-ever AW X =stopped")
  }

  @Test("an observer that leaves its modes one by one stays common forever, or is not contained", .rule(.m9, .r106))
  func leak() {
    let contains = Action.ask(.contains(.observer(0), .common))
    expectDifference(
      .m9,
      Program(
        observers: [.watcher],
        main: [.add(.observer(0), .common), .remove(.observer(0), 0), contains, .invalidate(.observer(0)), contains]),
      coreFoundation: "contains(O0,common)=yes contains(O0,common)=yes",
      ours: "contains(O0,common)=no contains(O0,common)=no")
  }

  @Test("the pseudo-mode becomes a mode when a block is posted for it, or never", .rule(.m11, .r30))
  func literalMode() {
    expectDifference(
      .m11, Program(blocks: [Body()], main: [.perform(0, [.common]), .ask(.modes)]),
      coreFoundation: "modes=common+m0", ours: "modes=m0")
  }

  @Test("a wake-up takes a pass from a timer, or not", .rule(.m19))
  func wakeUpAndTimer() {
    let program = Program(
      observers: [.watcher, .at(Stages.beforeWaiting, repeats: false, .once(.wakeUp, .work(2)))],
      timers: [TimerPlan(date: 1)], main: [.watch, .add(.observer(1), 0), .add(.timer(0), 0), .runDefault])
    expectDifference(
      .m19, program,
      coreFoundation: "E BT BS BW BW.1 AW BT BS BW AW T0 X =finished",
      ours: "E BT BS BW BW.1 AW T0 X =finished")
  }

  @Test("the date of a removed timer causes a pass, or none", .rule(.m20))
  func ghostDate() {
    let program = Program(
      sources: [SourcePlan()],
      observers: [.watcher, .at(Stages.beforeWaiting, repeats: false, .once(.remove(.timer(0), 0)))],
      timers: [TimerPlan(date: 4)],
      main: [.watch, .add(.observer(1), 0), .add(.source(0), 0), .add(.timer(0), 0), .runDefault])
    expectDifference(
      .m20, program,
      coreFoundation: "E BT BS BW BW.1 AW BT BS BW asleep-for-ever AW X =stopped",
      ours: "E BT BS BW BW.1 asleep-for-ever AW X =stopped")
  }

  @Test("a handled stop costs the next run one pass, or none", .rule(.m20, .r37))
  func ghostStop() {
    let program = Program(
      sources: [SourcePlan()], observers: [.watcher, .at(Stages.entry, repeats: false, .once(.stop))],
      main: [.watch, .add(.observer(1), 0), .add(.source(0), 0), .runDefault, .runDefault])
    expectDifference(
      .m20, program,
      coreFoundation: "E E.1 X =stopped E BT BS BW AW BT BS BW asleep-for-ever AW X =stopped",
      ours: "E E.1 X =stopped E BT BS BW asleep-for-ever AW X =stopped")
  }

  @Test("the stop of another mode makes a pass, or none", .rule(.m20, .r42))
  func stopOfAnotherMode() {
    let program = Program(
      sources: [SourcePlan()], observers: [.watcher], main: [.watch, .add(.source(0), 0), .runDefault],
      whileAsleep: [Interruption(at: 2, [.stopMode(1)])])
    expectDifference(
      .m20, program,
      coreFoundation: "E BT BS BW AW BT BS BW asleep-for-ever AW X =stopped",
      ours: "E BT BS BW asleep-for-ever AW X =stopped")
  }

  @Test("a timer moved by another thread makes a pass, or none", .rule(.m25, .r51))
  func movedTimer() {
    let program = Program(
      observers: [.watcher], timers: [TimerPlan(date: 5)], main: [.watch, .add(.timer(0), 0), .runDefault],
      whileAsleep: [Interruption(at: 2, [.setDate(0, 9)])])
    expectDifference(
      .m25, program,
      coreFoundation: "E BT BS BW AW BT BS BW AW T0 X =finished", ours: "E BT BS BW AW T0 X =finished")
  }

  @Test("a wake-up at the end of a nested run is forgotten, or is for the run around it", .rule(.m26, .r47))
  func unansweredWakeUp() {
    let program = Program(
      sources: [SourcePlan(), SourcePlan()],
      observers: [
        .watcher, .at(Stages.beforeSources, repeats: false, .once(.poll(1))), .at(Stages.exit, .once(.wakeUp)),
      ],
      main: [
        .watch, .add(.observer(1), 0), .add(.observer(2), 1), .add(.source(0), 0), .add(.source(1), 1), .runDefault,
      ])
    expectDifference(
      .m26, program,
      coreFoundation: "E BT BS BS.1 X.2 =timedOut BW asleep-for-ever AW X =stopped",
      ours: "E BT BS BS.1 X.2 =timedOut BW AW BT BS BW asleep-for-ever AW X =stopped")
  }

  @Test("an invalid timer has no date, or its last", .rule(.m27, .r99c))
  func invalidDate() {
    expectDifference(
      .m27, Program(timers: [TimerPlan(date: 5)], main: [.invalidate(.timer(0)), .ask(.date(0))]),
      coreFoundation: "date(T0)=none", ours: "date(T0)=5")
  }

  @Test("a date that is not later is ignored in the timer's own call-out, or counts", .rule(.m30, .r99))
  func dateInCallOut() {
    let program = Program(
      observers: [.watcher],
      timers: [TimerPlan(date: 2, interval: 3, body: Body([[.setDate(0, 1)], [.ask(.date(0)), .stop]]))],
      main: [.watch, .add(.timer(0), 0), .runDefault])
    expectDifference(
      .m30, program,
      coreFoundation: "E BT BS BW AW T0 BT BS BW AW T0 date(T0)=5 X =stopped",
      ours: "E BT BS BW AW T0 BT BS BW AW T0 date(T0)=1 X =stopped")
  }

  @Test("a date further ahead than sixteen years counts as that far, or as it was set", .rule(.m33, .r95))
  func farDate() {
    let program = Program(
      timers: [TimerPlan(date: 600_000_000), TimerPlan(date: 0)],
      main: [.setDate(1, 700_000_000), .add(.timer(1), 0), .add(.timer(0), 0), .runDefault])
    #expect("\(ReferenceModel().run(program))" == "@504911232 1m0 T1 T0 0- =finished")
    #expect("\(ReferenceModel.ours.run(program))" == "@600000000 1m0 T0 @700000000 T1 0- =finished")
    expectDifference(.m33, program, coreFoundation: "T1 T0 =finished", ours: "T0 T1 =finished")
  }
}
