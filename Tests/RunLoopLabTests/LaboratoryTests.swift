// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import XCTest

import class RunLoopCore.RunLoop
@testable import RunLoopLab

/// The whole laboratory, and the experiments that need the main thread, on which synchronous test methods run.
final class MainThreadTests: XCTestCase {
  // The tests' program links the umbrella too, and there the main dispatch queue is Core Foundation's as soon as that
  // has a main loop, which XCTest makes. The experiments are about our loop alone, as the command has it.

  override func setUp() {
    RunLoop.main.mainService?.turn(on: false)
    RunLoop.main.removeHost()
  }

  override func tearDown() { RunLoop.main.mainService?.turn(on: true) }

  private static let experiments = Catalog.all.filter {
    ($0.needsMainThread || $0.needsFreshWorkers) && !$0.needsRecords
  }

  /// Those that hold in this process too, in which live more loops than leave records.
  private static let ids = Catalog.all.filter { !$0.needsRecords }.map(\.id)

  /// What the command prints, line by line; it must succeed.
  private func lab(_ arguments: String...) -> String { lab(arguments) }

  private func lab(_ arguments: [String]) -> String {
    let printed = Record()
    let complaints = Record()
    let output = Output(print: { printed.write($0) }, complain: { complaints.write($0) })
    XCTAssertEqual(RunLoopCommand.run(["lab"] + arguments, output: output), .success)
    XCTAssertEqual(complaints.text, "none")
    return printed.lines.joined(separator: "\n")
  }

  func testAllExperimentsRunAndHold() {
    let printed = lab(Self.ids)
    for id in Self.ids { XCTAssertTrue("\n\(printed)".contains("\n\(id)  "), id) }
    XCTAssertTrue(
      printed.hasSuffix(
        """

        49 of 49 experiments hold.
        The articles' claims about Apple's loop: 32 confirmed, 12 corrected, 5 refuted; otherwise here: 11.
        """), printed)
  }

  func testTheGroupOfTheInterfacePrintsTheWholeLoopOfAnApplication() {
    let printed = lab("e")
    XCTAssertTrue(printed.contains("\n7 of 7 experiments hold.\n"), printed)
    XCTAssertTrue(
      printed.hasSuffix(
        "\n18 of 38 rows are the same in mode, kind, order and activities; the others are missing, as said."),
      printed)
    for line in printed.split(separator: "\n") { XCTAssertLessThanOrEqual(line.count, 100, String(line)) }
  }

  func testNoLineOfAReportIsWiderThanAHundredColumns() {
    for line in lab(["--verbose"] + Self.ids).split(separator: "\n") {
      XCTAssertLessThanOrEqual(line.count, 100, String(line))
    }
  }

  func testTheReportsAreOneArrayOfObjectsThatAnyReaderOfJSONUnderstands() throws {
    let parsed = try JSONSerialization.jsonObject(with: Data(lab(["--json"] + Self.ids).utf8))
    let objects = try XCTUnwrap(parsed as? [[String: Any]])
    XCTAssertEqual(objects.compactMap { $0["id"] as? String }, Self.ids)
    for object in objects {
      XCTAssertEqual(
        object.keys.sorted(),
        [
          "articles", "claim", "correction", "difference", "differences", "documents", "evidence", "holds", "id",
          "observed", "seconds", "title", "verdict",
        ])
      let articles = try XCTUnwrap(object["articles"] as? [[String: String]])
      XCTAssertEqual(articles.compactMap { $0["document"] }, object["documents"] as? [String])
      XCTAssertTrue(articles.allSatisfy { $0["author"]?.isEmpty == false && $0["title"]?.isEmpty == false })
      XCTAssertEqual(object["correction"] is NSNull, object["verdict"] as? String == "confirmed")
      XCTAssertNotEqual(object["evidence"] as? String, "")
      XCTAssertNotEqual(object["title"] as? String, "")
      XCTAssertNotEqual(object["claim"] as? String, "")
      XCTAssertFalse(try XCTUnwrap(object["observed"] as? String).isEmpty)
      XCTAssertTrue(["confirmed", "corrected", "refuted"].contains(object["verdict"] as? String))
      XCTAssertEqual(object["holds"] as? Bool, true)
      XCTAssertGreaterThanOrEqual(try XCTUnwrap(object["seconds"] as? Double), 0)
    }
  }

  func testAnExperimentThatNeedsTheMainThreadDoesTheSameAgain() {
    for experiment in Self.experiments {
      let first = Report(of: experiment)
      let second = Report(of: experiment)
      XCTAssertTrue(first.outcome.holds, "\(first.outcome)")
      XCTAssertEqual(first.outcome, second.outcome)
      XCTAssertEqual(first.log, second.log)
    }
  }

  func testOnAnotherThreadItSaysWhatItNeeds() {
    for experiment in Self.experiments where experiment.needsMainThread {
      let outcome = onNewThread { Report(of: experiment).outcome }
      XCTAssertFalse(outcome.holds)
      XCTAssertEqual(outcome.observations.map(\.observed), ["not the main thread"])
    }
  }
}
