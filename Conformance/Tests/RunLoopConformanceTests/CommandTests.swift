// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import RunLoopConformance

@Suite("The conformance tool's command line", .timeLimit(.minutes(20)))
struct CommandTests {
  private struct Session {
    let status: Int32
    let lines: [String]
    let complaints: [String]

    var text: String { lines.joined(separator: "\n") }
  }

  private func conformance(_ arguments: String...) -> Session {
    var lines: [String] = []
    var complaints: [String] = []
    let status = ConformanceCommand(print: { lines.append($0) }, complain: { complaints.append($0) }).run(arguments)
    return Session(status: status, lines: lines, complaints: complaints)
  }

  @Test("a series begins with its seed and ends with its counts")
  func series() throws {
    let session = conformance("--seed", "7", "--programs", "100", "--jobs", "2")
    #expect(session.status == 0)
    #expect(session.complaints == [])
    #expect(session.lines.first == "seed 7, 100 programs")
    let last = try #require(session.lines.last)
    let counts = try #require(last.wholeMatch(of: /equal ([0-9]+), named difference ([0-9]+), different 0/))
    let (equal, named) = (try #require(Int(counts.1)), try #require(Int(counts.2)))
    #expect(equal + named == 100 && named > 0)
    #expect(session.lines.contains { $0.wholeMatch(of: /M19 [0-9]+, alone [0-9]+/) != nil })
    // The same seed has the same counts.
    #expect(conformance("--seed", "7", "--programs", "100").lines == session.lines)
  }

  @Test("without a seed, a random one is used and printed")
  func randomSeed() {
    let session = conformance("--programs", "0")
    #expect(session.lines.first?.wholeMatch(of: /seed [0-9]+, 0 programs/) != nil)
    #expect(session.lines.last == "equal 0, named difference 0, different 0")
  }

  @Test("a program of a series is shown as a test, and read again from a file", arguments: [3, 10])
  func show(number: Int) throws {
    let session = conformance("--seed", "7", "--program", "\(number)")
    #expect(session.status == 0)
    #expect(session.text.contains("@Test(\"program \(number) of seed 7\")\n  func program\(number)OfSeed7() {\n"))
    var generator = Generator(seed: 7, number: number)
    let program = generator.program()
    #expect(session.text.contains("let program = \(program.source(indentation: 4, used: 18))\n"))

    let path = "/tmp/run-loop-program-\(getpid())-\(number)"
    let file = try #require(fopen(path, "w"))
    fputs(program.description, file)
    fclose(file)
    defer { unlink(path) }
    let again = conformance("--file", path)
    #expect(again.status == 0)
    #expect(again.text.contains("let program = \(program.source(indentation: 4, used: 18))\n"))
    #expect(again.lines.last == session.lines.last)
  }

  @Test(
    "an invalid argument is reported with the usage",
    arguments: [
      (["--seed"], "--seed wants a value"), (["--programs", "many"], "--programs wants a number, not many"),
      (["--programs", "-1"], "--programs wants a number, not -1"), (["--sed", "1"], "unknown argument --sed"),
      (["--file", "/nowhere"], "/nowhere cannot be read"),
    ])
  func mistakes(_ arguments: [String], _ complaint: String) {
    var complaints: [String] = []
    let status = ConformanceCommand(print: { _ in }, complain: { complaints.append($0) }).run(arguments)
    #expect(status == 2)
    #expect(complaints == ["conformance: \(complaint)", ConformanceCommand.usage])
  }

  @Test("--help prints the usage")
  func help() {
    #expect(conformance("--help").lines == [ConformanceCommand.usage])
    #expect(conformance("--help").status == 0)
  }
}
