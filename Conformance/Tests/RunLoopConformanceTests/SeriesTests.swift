// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopConformance

@Suite("Series of random programs", .timeLimit(.minutes(20)))
struct SeriesTests {
  @Test("both loops follow the model in every program", arguments: [1, 2, 3] as [UInt64])
  func programs(seed: UInt64) {
    let report = Series(seed: seed, numbers: 0..<400, jobs: 2).run()
    #expect(report.count == 400)
    #expect(report.different == [:], "\(report.logs)")
    #expect(report.equal > 200 && report.namedCount > 30)
  }

  @Test("a series has the same results on one thread and on several, in parts and as a whole")
  func jobs() {
    let whole = Series(seed: 8, numbers: 0..<60).run()
    #expect(Series(seed: 8, numbers: 0..<60, jobs: 4).run() == whole)
    let parts = [Series(seed: 8, numbers: 0..<25).run(), Series(seed: 8, numbers: 25..<60).run()]
    #expect(parts.map(\.equal).reduce(0, +) == whole.equal)
    #expect(parts.map(\.namedCount).reduce(0, +) == whole.namedCount)
  }

  @Test("a series ends when too many programs differ, and soon when one hangs")
  func patience() {
    struct Wrong: Machine {
      var isHung: Bool

      func run(_ program: Program) -> Log {
        let state = Log.State(tick: 0, depth: 0, mode: nil, isWaiting: false)
        return Log([Log.Entry(isHung ? .hung : .asleepForEver, state)])
      }
    }
    let wrong = Series(seed: 1, numbers: 0..<100, comparison: Comparison(ours: Wrong(isHung: false))).run()
    #expect(wrong.different == [0: .ours, 1: .ours, 2: .ours, 3: .ours, 4: .ours])
    let hung = Series(seed: 1, numbers: 0..<100, comparison: Comparison(ours: Wrong(isHung: true))).run()
    #expect(hung.different == [0: [.ours, .hung]])
  }
}
