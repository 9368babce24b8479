// SPDX-License-Identifier: Apache-2.0

/// The documentation's page of the rules of our loop, with their evidence.
struct RuleTable {
  var chapters: [RuleChapter]
  /// The tests that name a rule, by its name.
  var tests: [String: [NamedTest]]

  /// The maximum number of tests in a row.
  private static let shown = 3

  var text: String {
    var text = """
      # The rules

      What this run loop does, rule by rule, and the programs and tests that show it.

      ## Overview

      R: a rule of Core Foundation's loop, as it holds here. M: a difference, which <doc:Differences> explains. A program
      has been run on both loops, and <doc:Conformance> has the logs. A test names the rules that it shows.

      This page is made by `Documentation/rules` of the list of rules in `Conformance` and of the tests.

      """
    for chapter in chapters {
      text += "\n## \(chapter.title)\n\n| Rule | What it says | Program | Test |\n|---|---|---|---|\n"
      for rule in chapter.rules {
        let cells = [rule.name, rule.here ?? rule.statement, programs(of: rule), tests(of: rule)]
        text += "| " + cells.map(Self.escaped).joined(separator: " | ") + " |\n"
      }
    }
    return text
  }

  private static func escaped(_ cell: String) -> String {
    cell.split(separator: "|", omittingEmptySubsequences: false).joined(separator: "\\|")
  }

  /// Returns a link to the logs of a rule's programs, or the reason why there are none.
  private func programs(of rule: Rule) -> String {
    if let reason = rule.reason { return "*None.* \(reason)" }
    return rule.rulesWithPrograms(in: chapters).map { "<doc:Conformance#\($0)>" }.joined(separator: ", ")
  }

  /// Returns the first of a rule's tests, by suite.
  private func tests(of rule: Rule) -> String {
    let tests = tests[rule.name] ?? []
    guard !tests.isEmpty else { return "–" }
    var cell = ""
    var suite: String?
    for test in tests.prefix(Self.shown) {
      cell += suite == test.suite ? "; " : (suite == nil ? "" : ". ") + "*\(test.suite)*: "
      cell += test.title
      suite = test.suite
    }
    return tests.count > Self.shown ? "\(cell); and \(tests.count - Self.shown) more" : cell
  }
}

extension Rule {
  /// Returns the rules whose programs demonstrate this one: the rule itself, or those in which a difference is
  /// involved.
  func rulesWithPrograms(in chapters: [RuleChapter]) -> [String] {
    guard case .programsOfRules = evidence else { return scripts.isEmpty ? [] : [name] }
    return chapters.flatMap(\.rules).filter { rule in
      rule.scripts.contains { script in script.differences.contains { "\($0)" == name } }
    }.map(\.name)
  }
}
