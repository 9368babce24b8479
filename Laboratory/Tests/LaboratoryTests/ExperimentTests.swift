// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import Testing

import class RunLoopCore.RunLoop

@testable import LaboratoryKit

/// The experiments that can run on any thread; the others are tested by ``LaboratoryTests``.
// In a test process, worker threads run the tests themselves, so experiments about workers run with those that need
// the main thread.
private let idsForAnyThread =
  Catalog.all.filter { !$0.needsMainThread && !$0.needsFreshWorkers && !$0.needsRecords }.map(\.id)

@Suite("The experiments")
struct ExperimentTests {
  // In its own process, so that a crashing experiment affects no other test.
  @Test("a correct loop does what each experiment requires, and does so repeatably", .timeLimit(.minutes(20)))
  func holds() async {
    await #expect(processExitsWith: .success) {
      #expect(idsForAnyThread.count > 40)
      for id in idsForAnyThread {
        let experiment = try #require(Catalog.experiment(id))
        let first = Report(of: experiment)
        #expect(!first.outcome.observations.isEmpty)
        for observation in first.outcome.observations {
          #expect(observation.observed == observation.required, "\(id): \(observation.subject)")
        }
        #expect(first.outcome.holds)
        let second = Report(of: experiment)
        #expect(first.outcome == second.outcome, "\(id)")
        #expect(first.log == second.log, "\(id)")
        #expect(first.log.count > 1, "\(id)")
      }
    }
  }

  @Test("the ids are unique and in order")
  func ids() {
    let groups = [("A", 11), ("B", 8), ("C", 5), ("D", 18), ("E", 7), ("F", 4)]
    let ids: [String] = groups.flatMap { group, count in (1...count).map { "\(group)\($0)" } }
    #expect(Catalog.ids == ids)
  }

  @Test("every experiment names its articles, and has a correction unless it confirms them", arguments: Catalog.ids)
  func descriptions(_ id: String) throws {
    let experiment = try #require(Catalog.experiment(id))
    #expect(!experiment.title.isEmpty && !experiment.claim.isEmpty && !experiment.articles.isEmpty)
    // Each once, in the order of their numbers.
    #expect(experiment.articles == Article.all.filter(experiment.articles.contains))
    #expect(!experiment.evidence.isEmpty)
    #expect((experiment.verdict == .confirmed) == (experiment.verdict.correction == nil))
  }

  @Test("an experiment's differences have numbers that the documentation lists", arguments: Catalog.ids)
  func differences(_ id: String) throws {
    let difference = try #require(Catalog.experiment(id)).difference
    if case .numbered(let numbers, let text) = difference {
      #expect(!numbers.isEmpty && !text.isEmpty)
      for number in numbers { #expect(try listedDifferences().contains(number), "\(number)") }
    }
  }

  /// The numbers in the page of differences.
  private func listedDifferences() throws -> Set<String> {
    let page = URL(filePath: #filePath).appending(
      path: "../../../../Sources/RunLoopCore/RunLoopCore.docc/Differences.md"
    )
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
    "no article is refuted because of a behavior that is specific to this loop",
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

  @Test("an outcome holds if every observation is as required and there is at least one")
  func outcome() {
    var outcome = Outcome()
    #expect(!outcome.holds)
    outcome.observe("one", "1", requires: "1")
    #expect(outcome.holds)
    outcome.observe("two", "3", requires: "2")
    #expect(!outcome.holds)
  }

  @Test("a run that makes passes indefinitely at one virtual time is stopped", .timeLimit(.minutes(20)))
  func standstill() async {
    await #expect(processExitsWith: .success) {
      let result = Bench().onLoop { rig in
        postAgain(rig.loop)
        return rig.loop.run(mode: .default, for: .seconds(10))
      }
      #expect(result == .stopped)
    }
  }
}

/// Posts a block that posts itself again, indefinitely and without advancing the time.
private func postAgain(_ loop: RunLoop) {
  loop.perform { postAgain(loop) }
}
