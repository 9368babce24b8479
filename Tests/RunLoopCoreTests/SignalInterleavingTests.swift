// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing

@Suite("The signal of a source: every interleaving")
struct SignalInterleavingTests {
  private static let scripts: [[Int]] = [[1], [2], [1, 1], [2, 1], [2, 2]]
  private static let passes: [[Int]] = [[1], [2], [3], [1, 1], [2, 1], [2, 2]]

  @Test("no signal of a source is lost, and none is performed twice", .rule(.r70, .r71), arguments: scripts, passes)
  func correct(signals: [Int], passes: [Int]) {
    let verdict = SignalChecker(variant: .correct, signals: signals, passes: passes).run()
    #expect(verdict.lost == nil)
    #expect(verdict.twice == nil)
    #expect(verdict.ends > 0)
    #expect(verdict.performed == Set(0...min(signals.reduce(0, +), passes.reduce(0, +))))
  }

  @Test("no signal is lost or doubled when the source enters a mode", .rule(.r70, .r71), arguments: scripts, passes)
  func correctWhileEntering(signals: [Int], passes: [Int]) {
    let verdict = SignalChecker(variant: .correct, signals: signals, passes: passes, entered: passes.count - 1).run()
    #expect(verdict.lost == nil)
    #expect(verdict.twice == nil)
    #expect(verdict.ends > 0)
  }

  @Test(
    "the checker finds how a wrong protocol loses a source's signal",
    arguments: [SignalChecker.Variant.readBeforeMark, .clearAfterListing, .unlistInTwoSteps, .askBeforeEntering])
  func lost(variant: SignalChecker.Variant) {
    let isLost = Self.scripts.contains { signals in
      [nil, 1].contains { entered in
        SignalChecker(variant: variant, signals: signals, passes: [2, 2], entered: entered).run().lost != nil
      }
    }
    #expect(isLost)
  }

  @Test("the checker finds how a wrong protocol performs a source's signal twice")
  func twice() {
    #expect(SignalChecker(variant: .claimInTwoSteps, signals: [1], passes: [2, 2]).run().twice != nil)
  }
}
