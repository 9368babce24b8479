// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import RunLoopConformance

@Suite("The page of logs", .timeLimit(.minutes(20)))
struct LogPageTests {
  /// A machine that always logs a given result.
  private struct Teller: Machine {
    var outcome: RunOutcome?

    func run(_ program: Program) -> Log {
      let state = Log.State(tick: 0, depth: 0, mode: nil, isWaiting: false)
      return Log(outcome.map { [Log.Entry(.ranWith($0), state)] } ?? [])
    }
  }

  private let chapter = RuleChapter(
    title: "Stop",
    rules: [
      Rule(
        "R1", "One.", Script(Program(main: [.stop]), "what is written down is not what the page says"),
        Script(Program(main: [.wakeUp]), coreFoundation: "?", ours: "?", [.m20, .m2])),
      Rule("R2", "Two.", here: "Two and a half (M3).", notShown: "No."),
      Rule("R3", "Three.", notTested: "No."),
    ])

  private func sections(_ coreFoundation: RunOutcome?, _ ours: RunOutcome?) -> [String] {
    let page = LogPage(coreFoundation: Teller(outcome: coreFoundation), ours: Teller(outcome: ours))
    return page.text(of: [chapter]).split(separator: "\n### ").map { String($0.drop { $0 == "\n" }) }
  }

  @Test("logs are those of the loops, and those that differ have their reasons")
  func different() {
    #expect(
      sections(.finished, .stopped)[1] == """
        R1

        One.

        ```
        Program(main: [.stop])
        ```

        - Core Foundation: `=finished`
        - Ours: `=stopped`

        ```
        Program(main: [.wakeUp])
        ```

        - Core Foundation: `=finished`
        - Ours: `=stopped`
        - M2: No wake-up is lost to a nested run.
        - M20: Nothing outlives its reason.

        """)
  }

  @Test("logs that are the same are shown once, and an empty one is reported")
  func same() {
    #expect(sections(.finished, .finished)[1].contains("- Both: `=finished`\n"))
    #expect(sections(nil, nil)[1].contains("- Both: nothing.\n"))
    #expect(!sections(.finished, .finished)[1].contains("M20"))
  }

  @Test("our loop's behavior is listed, and a rule without a program has its reason")
  func notShown() {
    #expect(
      sections(nil, nil)[2...] == [
        "R2\n\nTwo. *Here:* Two and a half (M3).\n\nNo program shows it. No.\n",
        "R3\n\nThree.\n\nNo program shows it. No.\n",
      ])
  }

  @Test("the command writes the page, and reports whether one is current")
  func command() throws {
    var lines: [String] = []
    func conformance(_ arguments: String...) -> Int32 {
      ConformanceCommand(print: { lines.append($0) }, complain: { lines.append($0) }).run(arguments)
    }
    let path = "/tmp/run-loop-page-\(getpid())"
    defer { unlink(path) }
    #expect(conformance("--page", path, "--check") == 2)
    #expect(conformance("--page", path) == 0)
    #expect(conformance("--page", path, "--check") == 0)
    let file = try #require(fopen(path, "a"))
    fputs("more\n", file)
    fclose(file)
    #expect(conformance("--page", path, "--check") == 1)
    #expect(lines.last == "\(path) is not current: run Documentation/conformance")
    #expect(conformance("--check") == 2)
  }
}
