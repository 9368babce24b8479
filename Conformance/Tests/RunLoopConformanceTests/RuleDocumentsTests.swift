// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import RunLoopConformance

@Suite("Documents generated from the list of rules", .timeLimit(.minutes(20)))
struct RuleDocumentsTests {
  private let chapters = [
    RuleChapter(
      title: "Stop",
      rules: [
        Rule(
          "R1", "One.", here: "One here (M1).",
          Script(Program(main: [.stop]), coreFoundation: "?", ours: "?", [.m1, .m2])),
        Rule("R2", "Two | two.", notShown: "No."),
        Rule("R2a", "Three.", notTested: "Never."),
      ]),
    RuleChapter(
      title: "Differences",
      rules: [
        Rule(
          "M1", "First.", .programsOfRules,
          difference: DifferenceText(title: "The loop's title, in short", topic: "items", text: "The text."))
      ]),
  ]

  private func documents(_ text: String) -> RuleDocuments {
    RuleDocuments(chapters, files: [("FirstTests", "Tests/FirstTests.swift", text)])
  }

  /// A test that demonstrates R2.
  private let shown = """
    struct FirstTests {
      @Test("a title", .rule(.r2))
      func title() {}
    }
    """

  @Test("the page of rules has our loop's behavior, and names programs and tests")
  func table() throws {
    let documents = documents(shown)
    #expect(documents.mistakes == [])
    #expect(documents.summary == "4 rules: 2 shown by programs, 1 by tests")
    let page = try #require(documents.documents.first)
    #expect(page.path.hasSuffix("/Rules.md"))
    let rows = page.text.split(separator: "\n").filter { $0.hasPrefix("| R") || $0.hasPrefix("| M") }
    #expect(
      rows == [
        "| Rule | What it says | Program | Test |",
        "| R1 | One here (M1). | <doc:Conformance#R1> | – |",
        "| R2 | Two \\| two. | *None.* No. | *FirstTests*: a title |",
        "| R2a | Three. | *None.* Never. | – |",
        "| Rule | What it says | Program | Test |",
        "| M1 | First. | <doc:Conformance#R1> | – |",
      ])
  }

  @Test("the page of differences has an index and a section for each")
  func differences() {
    let page = documents(shown).documents[1].text
    #expect(page.contains("| <doc:Differences#M1-The-loops-title-in-short> | items |\n\n## The differences\n"))
    #expect(page.hasSuffix("\n### M1: The loop's title, in short\n\nThe text.\n"))
  }

  @Test("the names are the cases of an enumeration, with our loop's behavior")
  func names() {
    #expect(
      documents(shown).documents[2].text.hasSuffix(
        """
        package enum RuleID: String, CaseIterable, Sendable {
          /// One here (M1).
          case r1 = "R1"
          /// Two | two.
          case r2 = "R2"
          /// Three.
          case r2a = "R2a"
          /// First.
          case m1 = "M1"
        }

        """))
  }

  @Test("tests are found by their traits, those of XCTest by the comments above them")
  func tests() {
    let file = TestFile(
      name: "File",
      text: """
        @Suite("A \\"suite\\"", .rule(.r3))
        struct FileTests {
          // R1 is mentioned.
          @Test(
            "a title with (.rule(.r9)", .rule(.r1, .m2), .timeLimit(.minutes(1)),
            arguments: [1, 2])
          func first(_ number: Int) {}

          @Test("without rules") func second() {}

          @Test("on one line", .rule(.r28a)) func third() {}
        }

        let text = ""\"
          @Test("in a string", .rule(.r1)) func fourth() {}
          ""\"

        final class OldTests: XCTestCase {
          // R34, M16
          @MainActor
          func testAStopEndsARun() {}
        }
        """)
    #expect(file.mistakes == [])
    #expect(
      file.tests == [
        NamedTest(suite: "A \"suite\"", title: "every test", rules: ["R3"]),
        NamedTest(suite: "A \"suite\"", title: "a title with (.rule(.r9)", rules: ["R1", "M2"]),
        NamedTest(suite: "A \"suite\"", title: "on one line", rules: ["R28a"]),
        NamedTest(suite: "OldTests", title: "a stop ends a run", rules: ["R34", "M16"]),
      ])
  }

  @Test(
    "comments without a test, unknown names and rules without evidence are errors",
    arguments: [
      ("// R2\nlet number = 1", "Tests/FirstTests.swift: line 2: no test follows the comment with rules above"),
      ("// R2\n// R1\nfunc testIt() {}", "Tests/FirstTests.swift: line 2: a comment with rules is not above its test"),
      (
        "// R2\n@Test(\"a title\") func it() {}",
        "Tests/FirstTests.swift: line 2: a comment names the rules of a test that can have the trait .rule"
      ),
      ("@Test(.rule(.r2)) func it() {}", "Tests/FirstTests.swift: line 1: a test that names rules has no title"),
      ("// R9\nfunc testIt() {}", "Tests/FirstTests.swift: there is no rule R9: it"),
      ("// R2a\nfunc testIt() {}", "R2a has a test, and a reason to have none"),
      ("", "R2 has neither a program nor a test"),
    ])
  func mistakes(_ text: String, _ mistake: String) {
    #expect(documents(text).mistakes.contains(mistake))
  }

  @Test("a difference that is not involved in any program is an error")
  func difference() {
    #expect(RuleDocuments([chapters[1]], files: []).mistakes == ["M1 has a part in no program"])
  }

  @Test("the command updates a project, and reports outdated files and rules without evidence")
  func command() throws {
    var lines: [String] = []
    func conformance(_ arguments: String...) -> Int32 {
      ConformanceCommand(print: { lines.append($0) }, complain: { lines.append($0) }).run(arguments)
    }
    #expect(conformance("--rules", "/nowhere") == 2)
    let project = "/tmp/run-loop-project-\(getpid())"
    let pages = "\(project)/Sources/RunLoopCore/RunLoopCore.docc"
    let folders = [
      project, "\(project)/Conformance", "\(project)/Conformance/Tests", "\(project)/Tests", "\(project)/Tests/Rules",
      "\(project)/Sources", "\(project)/Sources/RunLoopCore", pages,
    ]
    let files = ["\(pages)/Rules.md", "\(pages)/Differences.md", "\(project)/Tests/Rules/RuleID.swift"]
    for folder in folders { mkdir(folder, 0o700) }
    defer {
      for file in files { unlink(file) }
      for folder in folders.reversed() { rmdir(folder) }
    }
    // The rules have no evidence, and the files are written anyway.
    #expect(conformance("--rules", project) == 1)
    #expect(lines.contains("R4 has neither a program nor a test"))
    lines = []
    #expect(conformance("--rules", project, "--check") == 1)
    #expect(files.allSatisfy { lines.contains("\($0) is current") })
    let file = try #require(fopen(files[0], "a"))
    fputs("more\n", file)
    fclose(file)
    lines = []
    #expect(conformance("--rules", project, "--check") == 1)
    #expect(lines.contains("\(files[0]) is not current: run Documentation/rules"))
  }
}
