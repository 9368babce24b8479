// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import RunLoopConformance

@Suite("Every rule, on both loops", .timeLimit(.minutes(20)))
struct RuleTests {
  private static let rules = RuleChapter.all.flatMap(\.rules)
  private static let project = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..")

  @Test(
    "a rule's programs have the recorded logs, on both loops and the model of both",
    arguments: rules.filter { !$0.scripts.isEmpty })
  func logs(of rule: Rule) {
    for script in rule.scripts {
      expectLogs(of: script.program, coreFoundation: script.coreFoundation, ours: script.ours)
    }
  }

  @Test(
    "if a rule's logs differ, the named differences are the smallest explanation",
    arguments: rules.filter { !$0.scripts.isEmpty })
  func differences(of rule: Rule) {
    for script in rule.scripts {
      let verdict = Comparison().verdict(on: script.program)
      #expect(verdict == (script.differences.isEmpty ? .equal : .named(script.differences)))
    }
  }

  @Test("every rule exists once, in the order of the numbers, without gaps")
  func names() {
    let names = Self.rules.map(\.name)
    #expect(names == names.sorted(by: Self.isBefore))
    #expect(Set(names).count == names.count)
    for (letter, count) in [("R", 124), ("M", 36)] {
      let numbers = Self.rules.filter { $0.name.hasPrefix(letter) }.map(\.number)
      #expect(Set(numbers) == Set(1...count))
    }
    #expect(names.prefix { $0.hasPrefix("R") }.count == 134)
  }

  @Test("a rule whose logs differ says what holds here, and names the differences; one without that has equal logs")
  func here() {
    let differences = Set(Self.rules.filter { $0.difference != nil }.map(\.name))
    for rule in Self.rules {
      let parts = rule.scripts.reduce(into: Set()) { $0.formUnion($1.differences.map { "\($0)" }) }
      #expect(parts.isSubset(of: rule.namedDifferences), "\(rule.name)")
      #expect(differences.isSuperset(of: rule.namedDifferences), "\(rule.name)")
      #expect(rule.here == nil || !rule.namedDifferences.isEmpty, "\(rule.name)")
      for text in [rule.statement, rule.here, rule.reason].compactMap({ $0 }) {
        #expect(text.hasSuffix("."), "\(rule.name)")
      }
    }
  }

  @Test("the generated files are current, and every rule has evidence")
  func documents() throws {
    let documents = try RuleDocuments(project: Self.project.path)
    #expect(documents.mistakes == [])
    for (path, text) in documents.documents {
      #expect(try String(contentsOf: Self.project.appending(path: path), encoding: .utf8) == text, "\(path)")
    }
  }

  @Test("each difference that programs can demonstrate is involved in a rule")
  func everyDifference() {
    let shown = Self.rules.flatMap(\.scripts).reduce(into: Set()) { $0.formUnion($1.differences) }
    #expect(Set(Difference.allCases).subtracting(shown) == [])
    let listed = Self.rules.filter { rule in
      if case .programsOfRules = rule.evidence { true } else { false }
    }
    #expect(listed.map(\.name) == Difference.allCases.map { "\($0)" })
    #expect(Difference.allCases.allSatisfy { $0.summary != "" })
  }

  /// Whether one name precedes another: R28, R28a, R29, M1.
  private static func isBefore(_ left: String, _ right: String) -> Bool {
    guard left.prefix(1) == right.prefix(1) else { return left.hasPrefix("R") }
    return left.compare(right, options: .numeric) == .orderedAscending
  }
}

extension Rule: CustomTestStringConvertible {
  package var testDescription: String { name }
}
