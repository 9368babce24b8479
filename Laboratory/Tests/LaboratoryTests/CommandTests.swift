// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LaboratoryKit

@Suite("The laboratory's command line")
struct CommandTests {
  /// The status and output of a command.
  struct Session {
    let status: CommandStatus
    let printed: String
    let complaints: String
  }

  private static func capture(_ body: (Output) -> CommandStatus) -> Session {
    let printed = Record()
    let complaints = Record()
    let status = body(Output(print: { printed.write($0) }, complain: { complaints.write($0) }))
    return Session(
      status: status, printed: printed.lines.joined(separator: "\n"),
      complaints: complaints.lines.joined(separator: "\n"))
  }

  private static func laboratory(_ arguments: String...) -> Session {
    capture { LabCommand(output: $0).run(arguments) }
  }

  @Test("the laboratory prints its own usage, and runs nothing")
  func labUsage() {
    let session = Self.laboratory("D2", "--help")
    #expect(session.status == .success)
    #expect(session.printed == LabCommand.usage)
  }

  @Test("named experiments run in the order given, each once, in either case")
  func some() async {
    await #expect(processExitsWith: .success) {
      let session = CommandTests.laboratory("D9", "d4", "D9")
      #expect(session.status == .success)
      let heads = session.printed.split(separator: "\n").filter { $0.hasPrefix("D") }.map { String($0.prefix(2)) }
      #expect(heads == ["D9", "D4"])
      #expect(
        session.printed.hasSuffix(
          """
          2 of 2 experiments hold.
          The articles' claims about Apple's loop: 1 confirmed, 1 corrected, 0 refuted; otherwise here: 1.
          """))
    }
  }

  @Test("the list names every experiment and runs none")
  func list() {
    let session = Self.laboratory("--list")
    #expect(session.status == .success)
    let lines = session.printed.split(separator: "\n")
    #expect(lines.map { String($0.prefix { $0 != " " }) } == Catalog.ids)
    #expect(lines.first == "A1   A one-shot thread in a local variable (Xiong, Yongzhen)")
    #expect(Self.laboratory("--list", "d16").printed == "D16  A timer that is not added (Xilankong)")
  }

  @Test("the log is printed on request only")
  func verbose() async {
    await #expect(processExitsWith: .success) {
      let line = "00:01:00.000  observer call-out -> name = afterWaiting"
      #expect(CommandTests.laboratory("D15", "--verbose").printed.contains(line))
      #expect(!CommandTests.laboratory("D15").printed.contains(line))
      #expect(
        CommandTests.laboratory("--verbose", "D1").printed.contains(
          "/// 8. The observers are told: the wait is over."))
    }
  }

  @Test("the letter of a group selects all of its experiments, each once")
  func group() {
    let session = Self.laboratory("--list", "c", "C2", "D9")
    #expect(session.status == .success)
    let ids = session.printed.split(separator: "\n").map { String($0.prefix { $0 != " " }) }
    #expect(ids == Catalog.ids.filter { $0.hasPrefix("C") } + ["D9"])
  }

  @Test("an unknown id suggests the nearest, and nothing runs")
  func unknownIDs() {
    let session = Self.laboratory("D4", "D19", "Q", "nothing")
    #expect(session.status == .usageError)
    #expect(session.printed.isEmpty)
    #expect(
      session.complaints.hasPrefix(
        """
        laboratory: no experiment "D19"; did you mean D18 or D17 or D16?
        laboratory: no experiment "Q"
        laboratory: no experiment "nothing"
        "laboratory --list" names the experiments
        """))
  }

  @Test("an unknown option suggests the nearest, and nothing runs")
  func unknownOption() {
    let session = Self.laboratory("D4", "--verbos", "-x")
    #expect(session.status == .usageError)
    #expect(session.printed.isEmpty)
    #expect(session.complaints.hasPrefix("laboratory: unknown option --verbos; did you mean --verbose?\n"))
    #expect(session.complaints.contains("unknown option -x"))
  }

  @Test("options that contradict each other are a usage error", arguments: ["--json", "--verbose"])
  func contradiction(_ option: String) {
    let session = Self.laboratory("--list", option)
    #expect(session.status == .usageError)
    #expect(session.complaints.hasPrefix("laboratory: --list goes with neither --json nor --verbose"))
  }
}

@Suite("Wrapping paragraphs")
struct WordTests {
  @Test("a paragraph is broken at its spaces, and the following lines are indented")
  func wrapping() {
    #expect(wrapped("one two three four", width: 9) == ["one two", "  three", "  four"])
    #expect(wrapped("  one two", width: 6) == ["  one", "    two"])
    #expect(wrapped("incomprehensibility is one word", width: 8) == ["incomprehensibility", "  is one", "  word"])
    #expect(wrapped("", width: 8) == [""])
  }
}
