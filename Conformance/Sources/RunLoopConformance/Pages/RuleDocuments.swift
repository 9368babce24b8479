// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The documents generated from the list of rules and a project's tests: two pages, and the names for tests.
struct RuleDocuments {
  let chapters: [RuleChapter]
  private var tests: [String: [NamedTest]] = [:]
  /// The errors in the tests, and the rules without evidence.
  private(set) var mistakes: [String] = []

  /// Creates the documents from test files with their names and paths, in order.
  init(_ chapters: [RuleChapter] = RuleChapter.all, files: [(name: String, path: String, text: String)]) {
    self.chapters = chapters
    let names = Set(chapters.flatMap(\.rules).map(\.name))
    for file in files {
      let read = TestFile(name: file.name, text: file.text)
      mistakes += read.mistakes.map { "\(file.path): \($0)" }
      for test in read.tests {
        for rule in test.rules {
          if !names.contains(rule) { mistakes.append("\(file.path): there is no rule \(rule): \(test.title)") }
          tests[rule, default: []].append(test)
        }
      }
    }
    mistakes += chapters.flatMap(\.rules).compactMap(mistake)
  }

  /// Reads the tests of a project's directory, in the order of the files' names.
  init(project: String) throws(ConformanceArguments.Failure) {
    var paths: [(inFolder: String, path: String)] = []
    for folder in ["Conformance/Tests", "Tests"] {
      guard let files = FileManager.default.enumerator(atPath: "\(project)/\(folder)") else {
        throw .init(message: "\(project)/\(folder) cannot be read")
      }
      paths += files.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }.map { ($0, "\(folder)/\($0)") }
    }
    var files: [(name: String, path: String, text: String)] = []
    for path in paths.sorted(by: { $0.inFolder < $1.inFolder }).map(\.path) {
      guard let text = try? String(contentsOfFile: "\(project)/\(path)", encoding: .utf8) else {
        throw .init(message: "\(project)/\(path) cannot be read")
      }
      files.append((String((path.split(separator: "/").last ?? "").dropLast(".swift".count)), path, text))
    }
    self.init(files: files)
  }

  /// The documents, with their paths in the project.
  var documents: [(path: String, text: String)] {
    let pages = "Sources/RunLoopCore/RunLoopCore.docc"
    let rules = chapters.flatMap(\.rules)
    return [
      ("\(pages)/Rules.md", RuleTable(chapters: chapters, tests: tests).text),
      ("\(pages)/Differences.md", DifferencePage(rules).text),
      ("Tests/Rules/RuleID.swift", RuleNames(rules: rules).source),
    ]
  }

  /// The number of rules, by their evidence.
  var summary: String {
    let rules = chapters.flatMap(\.rules)
    let withPrograms = rules.count { !$0.rulesWithPrograms(in: chapters).isEmpty }
    let withTests = rules.count { tests[$0.name] != nil }
    return "\(rules.count) rules: \(withPrograms) shown by programs, \(withTests) by tests"
  }

  /// Returns an error in the evidence for a rule, if any.
  private func mistake(_ rule: Rule) -> String? {
    let hasTest = tests[rule.name] != nil
    return switch rule.evidence {
    case .programs(let scripts): scripts.isEmpty ? "\(rule.name) has no program" : nil
    case .programsOfRules:
      rule.rulesWithPrograms(in: chapters).isEmpty ? "\(rule.name) has a part in no program" : nil
    case .tests: hasTest ? nil : "\(rule.name) has neither a program nor a test"
    case .none: hasTest ? "\(rule.name) has a test, and a reason to have none" : nil
    }
  }
}
