// SPDX-License-Identifier: Apache-2.0

import RunLoopConformance
import TestRules
import Testing

@Suite("The model: sources") struct ModelSourceTests {
  private func polled(_ sources: [SourcePlan], _ actions: Action..., polls: Int = 1) -> Program {
    Program(
      sources: sources,
      main: sources.indices.map { .add(.source($0), 0) } + actions + Array(repeating: .pollDefault, count: polls))
  }

  @Test("sources perform by order and then by their first signal, once", .rule(.r62, .r63))
  func order() {
    expectRule(
      polled(
        [SourcePlan(), SourcePlan(order: 1), SourcePlan(), SourcePlan(order: -1)],
        .signal(2), .signal(1), .signal(0), .signal(2), .signal(3)),
      gives: "S3 S2 S0 S1 =timedOut")
  }

  @Test("a source that is signalled while the pass performs waits for the next pass", .rule(.r64, .r65))
  func signalledMeanwhile() {
    expectRule(
      polled([SourcePlan(body: .once(.signal(0), .signal(1))), SourcePlan()], .signal(0), polls: 2),
      gives: "S0 =timedOut S0 S1 =timedOut")
  }

  @Test("a source that an earlier one removes still performs, one that it invalidates does not", .rule(.r66))
  func removedMeanwhile() {
    expectRule(
      polled(
        [
          SourcePlan(body: .once(.remove(.source(1), 0), .invalidate(.source(2)))), SourcePlan(), SourcePlan(),
          SourcePlan(order: 1),
        ],
        .signal(0), .signal(1), .signal(2), .signal(3)),
      gives: "S0 S1 S3 =timedOut")
  }

  @Test(
    "a nested run performs later sources of the pass, which then skips them, and a source within itself",
    .rule(.r67, .r68))
  func nested() {
    expectRule(
      polled(
        [SourcePlan(body: .once(.signal(0), .pollDefault)), SourcePlan(), SourcePlan(order: 1)],
        .signal(0), .signal(1), .signal(2)),
      gives: "S0 S1 S0 S2 =timedOut =timedOut")
  }

  @Test(
    "the signal of a source that is in no mode is kept; one that is invalid takes none and is not added",
    .rule(.r70, .r74))
  func signalsKept() {
    let program = Program(
      sources: [SourcePlan(), SourcePlan(), SourcePlan()],
      main: [
        .signal(0), .signal(1), .invalidate(.source(1)), .signal(1), .ask(.isSignalled(1)), .ask(.isValid(.source(1))),
        .add(.source(0), 0), .add(.source(1), 1), .ask(.modes), .pollDefault,
      ])
    expectRule(program, gives: "signalled(S1)=no valid(S1)=no modes=m0 S0 =timedOut")
  }

  @Test("a source in several modes performs once for each signal", .rule(.r71))
  func severalModes() {
    let program = Program(
      sources: [SourcePlan()], main: [.add(.source(0), 0), .add(.source(0), 1), .signal(0), .poll(1), .pollDefault])
    expectRule(program, gives: "S0 =timedOut =timedOut")
  }
}
