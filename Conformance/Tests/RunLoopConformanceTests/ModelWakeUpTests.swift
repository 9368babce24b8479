// SPDX-License-Identifier: Apache-2.0

import RunLoopConformance
import TestRules
import Testing

@Suite("The model: wake-ups") struct ModelWakeUpTests {
  private func program(_ observer: ObserverPlan, _ timers: [TimerPlan] = [TimerPlan(date: 5, body: .once(.stop))])
    -> Program
  {
    Program(
      sources: [SourcePlan()], observers: [.watcher, observer], timers: timers,
      main: [.watch, .add(.observer(1), 0), .add(.source(0), 0)] + timers.indices.map { .add(.timer($0), 0) }
        + [.runDefault])
  }

  @Test("a wake-up makes one more pass, and many at once make one", .rule(.r44, .r45))
  func oneMorePass() {
    let program = Program(
      sources: [SourcePlan()], observers: [.watcher], main: [.watch, .add(.source(0), 0), .runDefault],
      whileAsleep: [Interruption(at: 1, [.wakeUp, .wakeUp, .wakeUp]), Interruption(at: 2, [.stop])])
    expectRule(program, gives: "E BT BS BW AW BT BS BW AW X =stopped")
  }

  @Test("a wake-up outside every run is forgotten", .rule(.r46))
  func outside() {
    let program = Program(
      observers: [.watcher], timers: [TimerPlan(date: 1)], main: [.watch, .add(.timer(0), 0), .wakeUp, .runDefault])
    expectRule(program, gives: "E BT BS BW AW T0 X =finished")
  }

  @Test("a wake-up after the wait is handled by the next pass, which is made in any case", .rule(.r47))
  func afterWait() {
    expectRule(
      program(
        .at(Stages.afterWaiting, .once(.wakeUp)),
        [TimerPlan(date: 2, body: .once(.wakeUp)), TimerPlan(date: 5, body: .once(.stop))]),
      gives: "E BT BS BW AW AW.1 T0 BT BS BW AW AW.1 T1 X =stopped")
  }

  @Test(
    "a wake-up before the wait ends the wait", .rule(.r48),
    arguments: [
      (Stages.entry, "E E.1 BT BS BW AW BT BS BW AW T0 X =stopped"),
      (Stages.beforeTimers, "E BT BT.1 BS BW AW BT BT.1 BS BW AW T0 X =stopped"),
      (Stages.beforeSources, "E BT BS BS.1 BW AW BT BS BS.1 BW AW T0 X =stopped"),
      (Stages.beforeWaiting, "E BT BS BW BW.1 AW BT BS BW BW.1 AW T0 X =stopped"),
    ])
  func beforeWait(_ activity: UInt, _ letters: String) {
    expectRule(program(.at(activity, .once(.wakeUp))), gives: letters)
  }

  @Test("a wake-up by a source is taken by the look of the same pass", .rule(.r48))
  func bySource() {
    let program = Program(
      sources: [SourcePlan(body: .once(.wakeUp))], observers: [.watcher],
      timers: [TimerPlan(date: 1, body: .once(.stop))],
      main: [.watch, .add(.source(0), 0), .add(.timer(0), 0), .signal(0), .runDefault])
    expectRule(program, gives: "E BT BS S0 BT BS BW AW T0 X =stopped")
  }

  @Test("a timer that is added or moved takes effect on a sleeping loop", .rule(.r50))
  func timersWhileAsleep() {
    let program = Program(
      sources: [SourcePlan()], observers: [.watcher],
      timers: [TimerPlan(date: 3), TimerPlan(date: 4, body: .once(.stop))],
      main: [.watch, .add(.source(0), 0), .runDefault],
      whileAsleep: [Interruption(at: 1, [.add(.timer(0), 0), .add(.timer(1), .common)])])
    expectRule(program, gives: "E BT BS BW AW T0 BT BS BW AW T1 X =stopped")
  }

  @Test("neither a signal nor a removal wakes a loop that still has something", .rule(.r50, .r54))
  func signalWhileAsleep() {
    let program = Program(
      sources: [SourcePlan(), SourcePlan()], observers: [.watcher], timers: [TimerPlan(date: 4, body: .once(.stop))],
      main: [.watch, .add(.source(0), 0), .add(.source(1), 0), .add(.timer(0), 0), .runDefault],
      whileAsleep: [Interruption(at: 1, [.signal(0), .remove(.source(1), 0)])])
    expectRule(program, gives: "E BT BS BW AW T0 X =stopped")
  }

  @Test("the run nested before the wait does not see the wake-up of the run around it", .rule(.r49, .m2))
  func nestedSeesNone() {
    let program = Program(
      sources: [SourcePlan()],
      observers: [.watcher, .at(Stages.beforeWaiting, repeats: false, .once(.wakeUp, .run(1)))],
      timers: [TimerPlan(date: 3, body: .once(.stop)), TimerPlan(date: 6, body: .once(.stop))],
      main: [
        .add(.observer(1), 0), .add(.observer(0), 1), .add(.timer(0), 1), .add(.timer(1), 0), .runDefault,
      ])
    expectRule(
      program,
      coreFoundation: "BW.1 E BT BS BW AW BT BS BW AW T0 X =stopped T1 =stopped",
      ours: "BW.1 E BT BS BW AW T0 X =stopped T1 =stopped")
  }

  @Test("of a wake-up and a timer that are ready, the first to become so is served first", .rule(.r11, .m19))
  func kernelOrder() {
    let late = Action.elsewhere([.work(2), .wakeUp])
    let early = Action.elsewhere([.wakeUp, .work(2)])
    let timer = [TimerPlan(date: 1, body: .once(.stop))]
    expectRule(
      program(.at(Stages.beforeTimers, repeats: false, .once(late)), timer),
      gives: "E BT BT.1 BS BW AW T0 X =stopped")
    expectRule(
      program(.at(Stages.beforeTimers, repeats: false, .once(early)), timer),
      coreFoundation: "E BT BT.1 BS BW AW BT BS BW AW T0 X =stopped", ours: "E BT BT.1 BS BW AW T0 X =stopped")
  }
}
