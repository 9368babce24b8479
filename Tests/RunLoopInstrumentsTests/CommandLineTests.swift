// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopToolKit

@Suite("The tool's command line")
struct CommandLineTests {
  @Test("without arguments and for help, the tool prints its usage", arguments: [[], ["--help"], ["-h"], ["help"]])
  func usage(_ arguments: [String]) {
    let session = runloop(arguments)
    #expect(session.status == CommandStatus.success.rawValue)
    #expect(session.output.hasPrefix("usage: runloop <command>"))
    for command in ObservingCommands.all {
      #expect(session.output.contains("\n  \(command.name) "), "\(command.name)")
    }
    #expect(session.complaints.isEmpty)
  }

  @Test(
    "an unknown command is a usage error that suggests the nearest",
    arguments: [
      ("tap", "unknown command tap; did you mean top?"), ("--hepl", "unknown option --hepl; did you mean --help?"),
      ("lab", "unknown command lab"),
    ])
  func unknownCommand(_ argument: String, _ complaint: String) throws {
    let session = runloop([argument])
    #expect(session.status == CommandStatus.usageError.rawValue)
    #expect(session.output.isEmpty)
    #expect(try #require(session.complaints.first).hasPrefix("runloop: \(complaint)"))
  }
}

@Suite("The nearest names")
struct NearestTests {
  @Test(
    "the edit distance counts letters added, removed and replaced",
    arguments: [
      ("", "", 0), ("", "abc", 3), ("abc", "", 3), ("D1", "D1", 0), ("D19", "D1", 1), ("kitten", "sitting", 3),
    ])
  func distance(_ first: String, _ second: String, _ distance: Int) {
    #expect(editDistance(first, second) == distance)
    #expect(editDistance(second, first) == distance)
  }

  @Test("the nearest names have the least edit distance, in numeric order, and unrelated names are left out")
  func nearest() {
    #expect(nearestNames(to: "D8", among: ["D1", "D7", "D9", "E1"]) == ["D7", "D9", "D1"])
    #expect(nearestNames(to: "D77", among: ["D7", "D1"]) == ["D7"])
    #expect(nearestNames(to: "xyz", among: ["D7", "D1"]).isEmpty)
    #expect(nearestNames(to: "", among: ["D7", "D1"]).isEmpty)
    #expect(nearestNames(to: "D7", among: []).isEmpty)
  }
}
