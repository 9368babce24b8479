// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import RunLoopConformance

@Suite("Every rule, on both loops", .timeLimit(.minutes(20)))
struct RuleTests {
  private static let rules = RuleChapter.all.flatMap(\.rules)
  private static let project = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..")

  @Test(
    "its programs give the logs that are written down, on both loops and the model of both",
    arguments: rules.filter { !$0.scripts.isEmpty })
  func logs(of rule: Rule) {
    for script in rule.scripts {
      expectLogs(of: script.program, coreFoundation: script.coreFoundation, ours: script.ours)
    }
  }

  @Test(
    "where the logs differ, the differences that are named are the fewest that explain it",
    arguments: rules.filter { !$0.scripts.isEmpty })
  func differences(of rule: Rule) {
    for script in rule.scripts {
      let verdict = Comparison().verdict(on: script.program)
      #expect(verdict == (script.differences.isEmpty ? .equal : .named(script.differences)))
    }
  }

  @Test("the catalogue has the rules of the documentation, in their order, up to Foundation's own")
  func names() throws {
    let list = try String(contentsOf: Self.project.appending(path: "Documentation/rules.txt"), encoding: .utf8)
    let names = list.split(separator: "\n").compactMap { $0.wholeMatch(of: /(R[0-9]+[a-g]?) \| .*/)?.output.1 }
    #expect(Self.sorted(Self.rules.map(\.name)) == Self.sorted(names.prefix { $0 != "R121" }.map(String.init)))
  }

  @Test("a rule that no program shows has a test of our loop, or none can be")
  func tests() throws {
    let folder = Self.project.appending(path: "Tests")
    var titles: Set<String> = []
    for path in FileManager.default.enumerator(atPath: folder.path)?.compactMap({ $0 as? String }) ?? [] {
      guard path.hasSuffix(".swift") else { continue }
      let text = try String(contentsOf: folder.appending(path: path), encoding: .utf8)
      titles.formUnion(text.matches(of: /@Test\(\s*"([^"]*)"/).map { String($0.output.1) })
      titles.formUnion(text.matches(of: /func (test\w+)\(/).map { String($0.output.1) })
    }
    var without: [String] = []
    for rule in Self.rules {
      guard case .none(let reason, let test) = rule.evidence else { continue }
      #expect(reason.hasSuffix("."), "\(rule.name)")
      if let test { #expect(titles.contains(test), "\(rule.name)") } else { without.append(rule.name) }
    }
    #expect(without == ["R80", "R119"])
  }

  @Test("each difference that a program can show has a part in a rule")
  func everyDifference() {
    let shown = Self.rules.flatMap(\.scripts).reduce(into: Set()) { $0.formUnion($1.differences) }
    #expect(Set(Difference.allCases).subtracting(shown) == [])
  }

  private static func sorted(_ names: [String]) -> [String] {
    names.sorted { $0.compare($1, options: .numeric) == .orderedAscending }
  }
}

extension Rule: CustomTestStringConvertible {
  package var testDescription: String { name }
}
