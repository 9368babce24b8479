// SPDX-License-Identifier: Apache-2.0

import RunLoopConformance
import TestRules
import Testing

@Suite("The model: common modes") struct ModelCommonModeTests {
  private func contains(_ item: Item, _ modes: ModeName...) -> [Action] { modes.map { .ask(.contains(item, $0)) } }

  @Test("a common item enters every common mode once, including modes that become common later", .rule(.r101, .r102))
  func everyCommonMode() {
    let source = Item.source(0)
    expectRule(
      Program(
        sources: [SourcePlan()],
        main: [.addCommonMode(1), .add(source, .common)] + contains(source, .common, .mode(0), .mode(1), .mode(2))
          + [.addCommonMode(2), .remove(source, 1), .addCommonMode(1)] + contains(source, .mode(1), .mode(2))),
      gives: "contains(S0,common)=yes contains(S0,m0)=yes contains(S0,m1)=yes contains(S0,m2)=no "
        + "contains(S0,m1)=no contains(S0,m2)=yes")
  }

  @Test("an item that was removed from one mode stays common", .rule(.r103))
  func staysCommon() {
    let source = Item.source(0)
    expectRule(
      Program(
        sources: [SourcePlan()],
        main: [.add(source, .common), .remove(source, 0), .addCommonMode(1)]
          + contains(source, .common, .mode(0), .mode(1))),
      gives: "contains(S0,common)=yes contains(S0,m0)=no contains(S0,m1)=yes")
  }

  @Test("a common item is removed from every common mode, one that is not common from none", .rule(.r104))
  func removal() {
    expectRule(
      Program(
        sources: [SourcePlan(), SourcePlan()],
        main: [
          .add(.source(0), 0), .add(.source(0), 1), .add(.source(0), .common), .add(.source(1), 0),
          .remove(.source(0), .common), .remove(.source(1), .common),
        ] + contains(.source(0), .common, .mode(0), .mode(1)) + contains(.source(1), .mode(0))),
      gives: "contains(S0,common)=no contains(S0,m0)=no contains(S0,m1)=yes contains(S1,m0)=yes")
  }

  @Test("an item that has ended is no longer common", .rule(.r96, .r105))
  func ended() {
    expectRule(
      Program(
        sources: [SourcePlan()], timers: [TimerPlan(date: 1)],
        main: [.add(.timer(0), .common), .runDefault] + contains(.timer(0), .common)
          + [.add(.source(0), .common), .invalidate(.source(0))] + contains(.source(0), .common)),
      gives: "T0 =finished contains(T0,common)=no contains(S0,common)=no")
  }

  @Test(
    "an observer that leaves its modes one by one is not contained, and enters later common modes",
    .rule(.r99g, .r106, .m9))
  func observerLeaves() {
    expectRule(
      Program(
        observers: [.watcher],
        main: [.add(.observer(0), .common), .remove(.observer(0), 0)] + contains(.observer(0), .common, .mode(0))
          + [.addCommonMode(1)] + contains(.observer(0), .mode(1))),
      coreFoundation: "contains(O0,common)=yes contains(O0,m0)=no contains(O0,m1)=yes",
      ours: "contains(O0,common)=no contains(O0,m0)=no contains(O0,m1)=yes")
  }
}
