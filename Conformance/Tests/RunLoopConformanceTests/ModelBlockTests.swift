// SPDX-License-Identifier: Apache-2.0

import RunLoopConformance
import TestRules
import Testing

@Suite("The model: blocks") struct ModelBlockTests {
  @Test("blocks run in the order in which they were posted, also before the run", .rule(.r53, .r60))
  func order() {
    expectRule(
      Program(
        blocks: [Body(), Body(), Body()],
        main: [.post(2), .perform(0, [.common]), .perform(1, [.mode(1), .mode(0)]), .post(0), .pollDefault]),
      coreFoundation: "B2 B0 B1 B0 =timedOut", ours: "B2 B0 B1 B0 =timedOut")
  }

  @Test("a block for several modes runs once, in the first that runs", .rule(.r55))
  func once() {
    expectRule(
      Program(
        sources: [SourcePlan()], blocks: [Body()],
        main: [
          .add(.source(0), 0), .add(.source(0), 1), .perform(0, [.mode(0), .mode(1)]), .poll(1), .pollDefault,
        ]),
      gives: "B0 =timedOut =timedOut")
  }

  @Test("which modes are common is asked when a block could run", .rule(.r55))
  func commonLater() {
    expectRule(
      Program(
        sources: [SourcePlan()], blocks: [Body()],
        main: [.add(.source(0), 1), .perform(0, [.common]), .poll(1), .addCommonMode(1), .poll(1)]),
      gives: "=timedOut B0 =timedOut")
  }

  @Test("a block that does not match stays in front of those that came meanwhile", .rule(.r57))
  func nonMatching() {
    let program = Program(
      sources: [SourcePlan()], blocks: [.once(.perform(2, [.mode(1)])), Body(), Body()],
      main: [.add(.source(0), 0), .add(.source(0), 1), .post(0), .perform(1, [.mode(1)]), .pollDefault, .poll(1)])
    expectRule(program, gives: "B0 =timedOut B1 B2 =timedOut")
  }

  @Test(
    "a block by a timer or an observer after the wait runs in the same pass, one by such a block in the next",
    .rule(.r58))
  func blocksOfBlocks() {
    let program = Program(
      observers: [.watcher], timers: [TimerPlan(date: 1, interval: 1, body: Body([[.post(0)], [.stop]]))],
      blocks: [.once(.post(1)), Body()], main: [.watch, .add(.timer(0), 0), .runDefault])
    expectRule(program, gives: "E BT BS BW AW T0 B0 BT BS B1 BW AW T0 X =stopped")
  }

  @Test(
    "a nested run does not see the blocks that the pass around it has taken, not even to be kept alive", .rule(.r59))
  func nested() {
    let program = Program(
      sources: [SourcePlan()], blocks: [.once(.pollDefault, .run(1)), Body(), Body()],
      main: [.add(.source(0), 0), .post(0), .post(1), .perform(2, [.mode(1)]), .pollDefault, .poll(1)])
    expectRule(program, gives: "B0 =timedOut =finished B1 =timedOut B2 =timedOut")
  }

  @Test(
    "a block by another thread before the wait waits for a wake-up, or keeps the loop from sleeping",
    .rule(.r54, .m1, .m3))
  func elsewhere() {
    let program = Program(
      sources: [SourcePlan()],
      observers: [.watcher, .at(Stages.beforeWaiting, repeats: false, .once(.elsewhere([.post(0)])))],
      blocks: [.once(.stop)], main: [.watch, .add(.observer(1), 0), .add(.source(0), 0), .runDefault])
    expectRule(
      program,
      coreFoundation: "E BT BS BW BW.1 asleep-for-ever AW B0 X =stopped", ours: "E BT BS BW BW.1 AW B0 X =stopped")
  }
}
