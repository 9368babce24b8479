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
  /// For each experiment, the ways of breaking a loop that it must notice.
  static let noticed: [(id: String, faults: LoopFaults)] = [
    ("A1", .threadsHeld),
    ("A2", .loopsOutliveThreads),
    ("A3", .strangersAdded),
    ("A4", .otherLoopsGiven),
    ("A5", .strangersAdded),
    ("A6", .threadsHeld),
    ("A7", .otherLoopsGiven),
    ("A8", .otherLoopsGiven),
    ("A9", .otherLoopsGiven),
    ("A9", .handOffsAreBlocks),
    ("A10", .observersKeepAlive),
    ("A10", .strangersAdded),
    ("A11", .loopsOutliveThreads),
    ("B1", .stopIgnored),
    ("B2", .stopIgnored),
    ("B2", .handOffsAreBlocks),
    ("B3", .threadsHeld),
    ("B4", .threadsHeld),
    ("B5", .threadsHeld),
    ("B6", .stopIgnored),
    ("B7", .stopIgnored),
    ("B8", .invalidKept),
    ("B8", .stopIgnored),
    ("C1", .otherLoopsGiven),
    ("C1", .loopsOutliveThreads),
    ("C2", .otherLoopsGiven),
    ("C3", .loopsOutliveThreads),
    ("C4", .threadsHeld),
    ("C5", .stopIgnored),
    ("D1", .sleepInSlices),
    ("D1", .stopIgnored),
    ("D2", .stopIgnored),
    ("D3", .timersInEveryMode),
    ("D4", .commonItemsNotCopied),
    ("D4", .timersInEveryMode),
    ("D5", .duplicatesAdded),
    ("D6", .observersKeepAlive),
    ("D7", .emptyModesForgotten),
    ("D8", .signalsWake),
    ("D8", .portsSilent),
    ("D9", .missedTicksMadeUp),
    ("D9", .toleranceIgnored),
    ("D10", .observersReversed),
    ("D11", .postsMakeTimers),
    ("D12", .descriptionIncomplete),
    ("D12", .commonItemsNotCopied),
    ("D12", .stopIgnored),
    ("D13", .mainQueueIgnored),
    ("D14", .handOffsAreBlocks),
    ("D15", .sleepInSlices),
    ("D16", .newTimersAdded),
    ("D17", .invalidKept),
    ("D18", .commonModeRuns),
    ("E1", .observersReversed),
    ("E1", .commonItemsNotCopied),
    ("E2", .observersReversed),
    ("E2", .duplicatesAdded),
    ("E3", .observersReversed),
    ("E3", .duplicatesAdded),
    ("E4", .observersReversed),
    ("E4", .stopIgnored),
    ("E4", .duplicatesAdded),
    ("E5", .observersReversed),
    ("E5", .stopIgnored),
    ("E6", .strangersAdded),
    ("E7", .handOffsAreBlocks),
    ("F1", .postsMakeTimers),
    ("F1", .portsSilent),
    ("F2", .strangersAdded),
    ("F3", .sleepInSlices),
    ("F4", .postsMakeTimers),
  ]

  /// All ways of breaking a loop.
  static let allFaults = (0..<23).map { LoopFaults(rawValue: 1 << $0) }

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

  @Test(
    "a loop that is broken on purpose makes the experiment with records fail", .enabled(if: LoopFaults.isPossible),
    arguments: noticed.filter { $0.id == "F2" || $0.id == "F3" || $0.id == "F4" })
  func failsWithRecords(_ id: String, _ faults: LoopFaults) async throws {
    await #expect(processExitsWith: .success) { [id = id as String, faults = faults.rawValue as UInt32] in
      let experiment = try #require(Catalog.experiment(id))
      #expect(!Report(of: experiment, on: Bench(faults: LoopFaults(rawValue: faults))).outcome.holds)
    }
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

  @Test(
    "a loop that is broken on purpose makes the experiment fail", .enabled(if: LoopFaults.isPossible),
    arguments: noticed.filter { idsForAnyThread.contains($0.id) })
  func fails(_ id: String, _ faults: LoopFaults) throws {
    let experiment = try #require(Catalog.experiment(id))
    #expect(!Report(of: experiment, on: Bench(faults: faults)).outcome.holds)
  }

  @Test(
    "every experiment ends, however the loop is broken", .enabled(if: LoopFaults.isPossible), arguments: idsForAnyThread
  )
  func ends(_ id: String) throws {
    let experiment = try #require(Catalog.experiment(id))
    let subjects = experiment.run(on: Bench()).observations.map(\.subject)
    for faults in Self.allFaults {
      #expect(experiment.run(on: Bench(faults: faults)).observations.map(\.subject) == subjects)
    }
  }

  @Test("the table of what is noticed covers every experiment and every way of breaking a loop")
  func coverage() {
    #expect(Set(Self.noticed.map(\.id)) == Set(Catalog.ids))
    #expect(Set(Self.noticed.map(\.faults.rawValue)) == Set(Self.allFaults.map(\.rawValue)))
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
