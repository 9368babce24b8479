// SPDX-License-Identifier: Apache-2.0

import RunLoopConformance
import TestRules
import Testing

@Suite("The model: stops") struct ModelStopTests {
  @Test("a stop outside every run is forgotten", .rule(.r34))
  func outside() {
    expectRule(
      Program(
        observers: [.watcher], timers: [TimerPlan(date: 1)], main: [.watch, .add(.timer(0), 0), .stop, .runDefault]),
      gives: "E BT BS BW AW T0 X =finished")
  }

  @Test("a stop is for the innermost run; the run around it is stopped by its own", .rule(.r35, .r36))
  func innermost() {
    let program = Program(
      sources: [SourcePlan(body: .once(.stop, .run(1))), SourcePlan(body: .once(.stop))], observers: [.watcher],
      main: [.watch, .add(.source(0), 0), .add(.source(1), 1), .signal(0), .signal(1), .runDefault])
    expectRule(program, gives: "E BT BS S0 S1 =stopped X =stopped")
  }

  @Test("a stop in an entry observer ends the run without a pass", .rule(.r37))
  func atEntry() {
    expectRule(
      Program(
        sources: [SourcePlan()], observers: [.watcher, .at(Stages.entry, .once(.stop))],
        main: [.watch, .add(.observer(1), 0), .add(.source(0), 0), .runDefault]),
      gives: "E E.1 X =stopped")
  }

  @Test("a stop in an exit observer is forgotten", .rule(.r38))
  func atExit() {
    let program = Program(
      sources: [SourcePlan()], observers: [.watcher, .at(Stages.exit, .once(.stop))],
      timers: [TimerPlan(date: 2, body: .once(.stop))],
      main: [.watch, .add(.observer(1), 0), .add(.source(0), 0), .add(.timer(0), 0), .pollDefault, .runDefault])
    expectRule(program, gives: "E BT BS X X.1 =timedOut E BT BS BW AW T0 X X.1 =stopped")
  }

  @Test("a stop before the wait ends the wait, and the pass is made to its end", .rule(.r39))
  func beforeWaiting() {
    let program = Program(
      sources: [SourcePlan()], observers: [.watcher, .at(Stages.beforeTimers, .once(.stop))], blocks: [Body()],
      main: [.watch, .add(.observer(1), 0), .add(.source(0), 0), .post(0), .runDefault])
    expectRule(program, gives: "E BT BT.1 BS B0 BW AW X =stopped")
  }

  @Test("a stop by another thread while a source performs ends the run with that pass", .rule(.r39, .r40))
  func whilePerforming() {
    let program = Program(
      sources: [SourcePlan(body: .once(.elsewhere([.stop])))], observers: [.watcher],
      main: [.watch, .add(.source(0), 0), .signal(0), .runDefault])
    expectRule(program, gives: "E BT BS S0 X =stopped")
  }

  @Test("a stop ends the sleep", .rule(.r39, .r45))
  func asleep() {
    expectRule(
      Program(
        sources: [SourcePlan()], observers: [.watcher], main: [.watch, .add(.source(0), 0), .runDefault],
        whileAsleep: [Interruption(at: 3, [.stop])]),
      gives: "E BT BS BW AW X =stopped")
  }

  @Test("a stop takes effect once", .rule(.r41))
  func once() {
    let program = Program(
      sources: [SourcePlan(body: Body([[.stop, .stop]]))], observers: [.watcher],
      timers: [TimerPlan(date: 1, body: .once(.stop))],
      main: [.watch, .add(.source(0), 0), .add(.timer(0), 0), .signal(0), .runDefault, .runDefault])
    expectRule(program, gives: "E BT BS S0 X =stopped E BT BS BW AW T0 X =stopped")
  }

  @Test("the stop of a mode waits for a run of that mode", .rule(.r42))
  func ofMode() {
    let program = Program(
      sources: [SourcePlan()], observers: [.watcher],
      main: [.watch, .add(.source(0), 0), .add(.source(0), 1), .stopMode(0), .poll(1), .runDefault, .pollDefault])
    expectRule(program, gives: "=timedOut E X =stopped E BT BS X =timedOut")
  }

  @Test("the stop of a mode is for it though a run of another mode is innermost", .rule(.r42))
  func ofOuterMode() {
    let program = Program(
      sources: [SourcePlan(body: .once(.poll(1))), SourcePlan(body: .once(.stopMode(0)))], observers: [.watcher],
      main: [.watch, .add(.source(0), 0), .add(.source(1), 1), .signal(0), .signal(1), .runDefault])
    expectRule(program, gives: "E BT BS S0 S1 =timedOut X =stopped")
  }

  @Test("a stop of the run takes effect before a stop of the mode, which remains pending", .rule(.r6, .r42))
  func bothStops() {
    let program = Program(
      sources: [SourcePlan(body: .once(.stop, .stopMode(0)))], observers: [.watcher],
      main: [.watch, .add(.source(0), 0), .signal(0), .runDefault, .runDefault])
    expectRule(program, gives: "E BT BS S0 X =stopped E X =stopped")
  }
}
