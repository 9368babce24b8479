// SPDX-License-Identifier: Apache-2.0

import RunLoopConformance
import TestRules
import Testing

@Suite("The model: observers") struct ModelObserverTests {
  private func polled(_ observers: [ObserverPlan], _ added: [Int], polls: Int = 1) -> Program {
    Program(
      sources: [SourcePlan()], observers: observers,
      main: [.add(.source(0), 0)] + added.map { .add(.observer($0), 0) } + Array(repeating: .pollDefault, count: polls))
  }

  @Test("observers are called by order and then as they were added", .rule(.r83))
  func order() {
    expectRule(
      polled(
        [
          .at(Stages.entry), .at(Stages.entry, order: 1), .at(Stages.entry),
          .at(Stages.entry, order: -1),
        ],
        [2, 1, 0, 3]),
      gives: "E.3 E.2 E E.1 =timedOut")
  }

  @Test("an observer that does not repeat is valid in its call and invalid after it", .rule(.r84))
  func notRepeating() {
    let ask = Action.ask(.isValid(.observer(0)))
    let program = Program(
      sources: [SourcePlan()], observers: [.at(Stages.everything, repeats: false, .once(ask))],
      main: [.add(.source(0), 0), .watch, .pollDefault, ask, .ask(.contains(.observer(0), .mode(0)))])
    expectRule(program, gives: "E valid(O0)=yes =timedOut valid(O0)=no contains(O0,m0)=no")
  }

  @Test(
    "of a stage's observers one that is removed is still called, one that is invalid is not, a new one is not yet",
    .rule(.r85))
  func changedMeanwhile() {
    let change = Body.once(.remove(.observer(1), 0), .invalidate(.observer(2)), .add(.observer(3), 0))
    let program = polled(
      [.at(Stages.beforeTimers, change)]
        + Array(repeating: .at(Stages.beforeTimers | Stages.beforeSources), count: 3),
      [0, 1, 2])
    expectRule(program, gives: "BT BT.1 BS.3 =timedOut")
  }

  @Test("a run nested in an observer calls the others, at all stages", .rule(.r86, .r91))
  func nested() {
    expectRule(
      polled(
        [.at(Stages.everything, Body([[], [.pollDefault]])), .at(Stages.entry | Stages.exit)], [0, 1]),
      gives: "E E.1 BT E.1 X.1 =timedOut BS X X.1 =timedOut")
  }

  @Test("an observer may remove and add itself in its call", .rule(.r90))
  func readded() {
    expectRule(
      polled(
        [.at(Stages.entry, .once(.remove(.observer(0), 0), .add(.observer(0), 0))), .at(Stages.entry)], [0, 1],
        polls: 2),
      gives: "E E.1 =timedOut E.1 E =timedOut")
  }
}
