// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import Testing

@testable import LaboratoryKit

/// The whole laboratory, and the experiments that need the main thread or records, in separate processes.
@Suite("The laboratory", .timeLimit(.minutes(20)))
struct LaboratoryTests {
  private static let experiments = Catalog.all.filter {
    ($0.needsMainThread || $0.needsFreshWorkers) && !$0.needsRecords
  }

  /// Runs the command, which must succeed, and returns its output.
  private func lab(_ arguments: String...) async throws -> String {
    let (status, printed) = try await laboratory(arguments)
    #expect(status == 0, "\(printed)")
    return printed
  }

  @Test("all experiments run and hold")
  func all() async throws {
    let printed = try await lab()
    for id in Catalog.ids { #expect("\n\(printed)".contains("\n\(id)  "), "\(id)") }
    #expect(
      printed.hasSuffix(
        """

        53 of 53 experiments hold.
        The articles' claims about Apple's loop: 33 confirmed, 15 corrected, 5 refuted; otherwise here: 11.
        """), "\(printed)")
  }

  @Test("the group of the interface prints the whole loop of an application")
  func interface() async throws {
    let printed = try await lab("e")
    #expect(printed.contains("\n7 of 7 experiments hold.\n"), "\(printed)")
    #expect(
      printed.hasSuffix(
        "\n18 of 38 rows are the same in mode, kind, order and activities; the others are missing, as said."),
      "\(printed)")
    for line in printed.split(separator: "\n") { #expect(line.count <= 100, "\(line)") }
  }

  @Test("no line of a report is wider than a hundred columns")
  func width() async throws {
    for line in try await lab("--verbose").split(separator: "\n") { #expect(line.count <= 100, "\(line)") }
  }

  @Test("the reports are one array of objects that any reader of JSON understands")
  func json() async throws {
    let parsed = try JSONSerialization.jsonObject(with: Data(try await lab("--json").utf8))
    let objects = try #require(parsed as? [[String: Any]])
    #expect(objects.compactMap { $0["id"] as? String } == Catalog.ids)
    for object in objects {
      #expect(
        object.keys.sorted() == [
          "articles", "claim", "correction", "difference", "differences", "documents", "evidence", "holds", "id",
          "observed", "seconds", "title", "verdict",
        ])
      let articles = try #require(object["articles"] as? [[String: String]])
      #expect(articles.compactMap { $0["document"] } == object["documents"] as? [String])
      #expect(articles.allSatisfy { $0["author"]?.isEmpty == false && $0["title"]?.isEmpty == false })
      #expect((object["correction"] is NSNull) == (object["verdict"] as? String == "confirmed"))
      for name in ["evidence", "title", "claim", "observed"] {
        #expect(try #require(object[name] as? String).isEmpty == false)
      }
      #expect(["confirmed", "corrected", "refuted"].contains(object["verdict"] as? String))
      #expect(object["holds"] as? Bool == true)
      #expect(try #require(object["seconds"] as? Double) >= 0)
    }
  }

  @Test("an experiment that needs the main thread is repeatable")
  func mainThread() async throws {
    let ids = Self.experiments.map(\.id)
    let first = try await laboratory(["--verbose"] + ids)
    let second = try await laboratory(["--verbose"] + ids)
    #expect(first.status == 0)
    // Code addresses differ between processes.
    let address = /0x[0-9a-f]{9,16}/
    #expect(first.printed.replacing(address, with: "0x…") == second.printed.replacing(address, with: "0x…"))
    #expect(first.printed.contains("\n\(ids.count) of \(ids.count) experiments hold."))
  }

  @Test("an experiment on the wrong thread reports what it needs")
  func otherThread() {
    for experiment in Self.experiments where experiment.needsMainThread {
      let outcome = onNewThread { Report(of: experiment).outcome }
      #expect(!outcome.holds)
      #expect(outcome.observations.map(\.observed) == ["not the main thread"])
    }
  }
}
