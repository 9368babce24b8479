// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing

@testable import RunLoopConformance

@Suite("The comparison of logs")
struct ComparisonTests {
  /// A machine whose logs the test determines.
  private struct Told: Machine {
    var answer: @Sendable (Program) -> Log

    func run(_ program: Program) -> Log { answer(program) }
  }

  private static let before = Log.State(tick: 0, depth: 0, mode: nil, isWaiting: false)

  /// Returns a log with one entry for each number.
  private func log(_ numbers: Int...) -> Log { Log(numbers.map { Log.Entry(.source($0), Self.before) }) }

  private func told(_ log: Log) -> Told { Told { _ in log } }

  /// Compares loops that have these logs, with a model whose log depends on the set of differences.
  private func verdict(
    _ coreFoundation: Log, _ ours: Log, model: @escaping @Sendable (Set<Difference>) -> Log
  ) -> Comparison.Verdict {
    let comparison = Comparison(coreFoundation: told(coreFoundation), ours: told(ours)) { differences in
      let log = model(differences)
      return Told { _ in log }
    }
    return comparison.verdict(on: Program())
  }

  @Test("four equal logs are equal")
  func equal() {
    let log = log(1)
    #expect(verdict(log, log) { _ in log } == .equal)
  }

  @Test("a loop that does not follow the model is different, although the other does")
  func different() {
    let (one, two) = (log(1), log(2))
    #expect(verdict(one, two) { _ in two } == .different(.coreFoundation))
    #expect(verdict(one, two) { _ in one } == .different(.ours))
    #expect(verdict(one, one) { _ in two } == .different([.coreFoundation, .ours]))
    // Although both behave the same.
    #expect(verdict(one, one) { $0.isEmpty ? one : two } == .different(.ours))
  }

  @Test("a program that does not end is different, whatever its log")
  func hung() {
    let hung = Log([Log.Entry(.hung, Self.before)])
    #expect(verdict(log(1), hung) { _ in log(1) } == .different([.ours, .hung]))
    #expect(verdict(hung, hung) { _ in hung } == .different(.hung))
  }

  @Test("a difference is named by the smallest set that explains it, and of several by the first")
  func names() {
    let (one, two) = (log(1), log(2))
    #expect(verdict(one, two) { $0.contains(.m19) ? two : one } == .named([.m19]))
    #expect(verdict(one, two) { $0.isSuperset(of: [.m2, .m19, .m25]) ? two : one } == .named([.m2, .m19, .m25]))
    // Three differences explain it, and so do two others.
    #expect(
      verdict(one, two) { $0.isSuperset(of: [.m1, .m2, .m3]) || $0.isSuperset(of: [.m4, .m30]) ? two : one }
        == .named([.m4, .m30]))
    #expect(verdict(one, two) { $0.contains(.m3) || $0.contains(.m11) ? two : one } == .named([.m3]))
    // One set explains it, a larger one does not, and the set of all does.
    let all = Set(Difference.allCases)
    #expect(verdict(one, two) { $0 == all || $0 == [.m9] ? two : one } == .named([.m9]))
  }

  @Test("real differences have their names", .rule(.m1, .m3))
  func real() {
    let blockOfBlock = Program(
      sources: [SourcePlan()], blocks: [.once(.post(1)), .once(.stop)],
      main: [.add(.source(0), 0), .post(0), .runDefault])
    #expect(Comparison().verdict(on: blockOfBlock) == .named([.m1]))
    let posted = Program(
      sources: [SourcePlan()], blocks: [.once(.stop)], main: [.add(.source(0), 0), .runDefault],
      whileAsleep: [Interruption(at: 1, [.post(0)])])
    #expect(Comparison().verdict(on: posted) == .named([.m3]))
    #expect(Comparison().verdict(on: Program(main: [.runDefault])) == .equal)
  }
}
