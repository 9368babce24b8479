// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import Testing

import class RunLoopCore.RunLoop

@testable import RunLoopLab

/// The experiments that any thread can run; the others are tested by ``MainThreadTests``.
// The workers of this process run the tests themselves; what looks at workers is tested beside what needs the main
// thread.
private let idsForAnyThread =
  Catalog.all.filter { !$0.needsMainThread && !$0.needsFreshWorkers && !$0.needsRecords }.map(\.id)

@Suite("The experiments")
struct ExperimentTests {
  @Test("an honest loop does what each experiment requires", arguments: idsForAnyThread)
  func holds(_ id: String) throws {
    let report = Report(of: try #require(Catalog.experiment(id)))
    #expect(!report.outcome.observations.isEmpty)
    for observation in report.outcome.observations {
      #expect(observation.observed == observation.required, "\(id): \(observation.subject)")
    }
    #expect(report.outcome.holds)
  }

  // In a process of their own: in this one live more loops than leave records.
  @Test("an honest loop does what each experiment with records requires")
  func holdsWithRecords() async throws {
    let tool = try #require(builtProgram("runloop"))
    let process = Foundation.Process()
    let output = Foundation.Pipe()
    process.executableURL = tool
    process.arguments = ["lab"] + Catalog.all.filter(\.needsRecords).map(\.id)
    process.standardOutput = output
    // The pool's threads are for other tests meanwhile.
    let end = AsyncStream.makeStream(of: Void.self)
    process.terminationHandler = { _ in end.continuation.finish() }
    try process.run()
    for await _ in end.stream {}
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    #expect(process.terminationStatus == 0, "\(text)")
    #expect(text.contains("4 of 4 experiments hold"), "\(text)")
  }

  @Test("the same experiment observes the same again", arguments: idsForAnyThread)
  func isDeterministic(_ id: String) throws {
    let experiment = try #require(Catalog.experiment(id))
    let first = Report(of: experiment)
    let second = Report(of: experiment)
    #expect(first.outcome == second.outcome)
    #expect(first.log == second.log)
    #expect(first.log.count > 1)
  }

  @Test("the ids are unique and in order")
  func ids() {
    let groups = [("A", 11), ("B", 8), ("C", 5), ("D", 18), ("E", 7), ("F", 4)]
    let ids: [String] = groups.flatMap { group, count in (1...count).map { "\(group)\($0)" } }
    #expect(Catalog.ids == ids)
  }

  @Test("every experiment names its articles, and says what is right where it corrects them", arguments: Catalog.ids)
  func descriptions(_ id: String) throws {
    let experiment = try #require(Catalog.experiment(id))
    #expect(!experiment.title.isEmpty && !experiment.claim.isEmpty && !experiment.articles.isEmpty)
    // Each once, in the order of their numbers.
    #expect(experiment.articles == Article.all.filter(experiment.articles.contains))
    #expect(!experiment.evidence.isEmpty)
    #expect((experiment.verdict == .confirmed) == (experiment.verdict.correction == nil))
  }

  @Test("what is otherwise here has the numbers of differences that the documentation lists", arguments: Catalog.ids)
  func differences(_ id: String) throws {
    let difference = try #require(Catalog.experiment(id)).difference
    if case .numbered(let numbers, let text) = difference {
      #expect(!numbers.isEmpty && !text.isEmpty)
      for number in numbers { #expect(try listedDifferences().contains(number), "\(number)") }
    }
  }

  /// The numbers in the page of differences.
  private func listedDifferences() throws -> Set<String> {
    let page = URL(filePath: #filePath).appending(path: "../../../Sources/RunLoopCore/RunLoopCore.docc/Differences.md")
      .standardized
    let headings = try String(contentsOf: page, encoding: .utf8).split(separator: "\n").filter { $0.hasPrefix("### M") }
    return Set(headings.map { String($0.dropFirst(4).prefix { $0 != ":" }) })
  }

  @Test("the articles have the numbers and names under which they are known")
  func articles() {
    #expect(Article.all.map(\.document) == ["000", "001", "002", "003", "004"])
    #expect(Article.all.map(\.author) == ["Xiong", "Qiu", "Yongzhen", "Xilankong", "Ren"])
    #expect(Article.ren.citation.hasPrefix("Ren Yufei, 2016: "))
    #expect(Article.qiu.citation.hasPrefix("qxuewei: iOS"))
  }

  @Test(
    "no article is called wrong for what only ours does otherwise",
    arguments: ["A2", "A9", "B6", "B8", "C1", "C2", "C5", "D12"])
  func rightAboutApple(_ id: String) throws {
    #expect(try #require(Catalog.experiment(id)).verdict == .confirmed)
  }

  @Test("an experiment is found by its id in upper and lower case")
  func lookUp() {
    #expect(Catalog.experiment("d10")?.id == "D10")
    #expect(Catalog.experiment("D10")?.id == "D10")
    #expect(Catalog.experiment("D99") == nil)
  }

  @Test("an outcome holds if every observation is as required, and not without any")
  func outcome() {
    var outcome = Outcome()
    #expect(!outcome.holds)
    outcome.observe("one", "1", requires: "1")
    #expect(outcome.holds)
    outcome.observe("two", "3", requires: "2")
    #expect(!outcome.holds)
  }

  @Test("a run that makes passes without end at one moment is cut short", .timeLimit(.minutes(20)))
  func standstill() {
    let result = Bench().onLoop { rig in
      postAgain(rig.loop)
      return rig.loop.run(mode: .default, for: .seconds(10))
    }
    #expect(result == .timedOut)
  }
}

/// Posts a block that posts itself again, for ever and at one moment.
private func postAgain(_ loop: RunLoop) {
  loop.perform { postAgain(loop) }
}

/// A program of this package that was built beside the tests; nil if it was not.
private func builtProgram(_ name: String) -> URL? {
  [Bundle.main.bundleURL, URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()]
    .map { $0.appendingPathComponent(name) }.first { FileManager.default.isExecutableFile(atPath: $0.path) }
}
