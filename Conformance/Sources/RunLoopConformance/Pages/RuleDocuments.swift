// SPDX-License-Identifier: Apache-2.0

import Foundation

/// What is made of the list of rules and of a project's tests: two pages, and the names by which tests refer to rules.
struct RuleDocuments {
  let chapters: [RuleChapter]
  private var tests: [String: [NamedTest]] = [:]
  /// What is wrong with the tests, and which rules nothing shows.
  private(set) var mistakes: [String] = []

  /// Takes files of tests by their names and paths, in their order.
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

  /// Reads the tests of the project in a folder, in the order of the files' names.
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

  /// What is made, by the path in the project.
  var documents: [(path: String, text: String)] {
    let pages = "Sources/RunLoopCore/RunLoopCore.docc"
    let rules = chapters.flatMap(\.rules)
    return [
      ("\(pages)/Rules.md", RuleTable(chapters: chapters, tests: tests).text),
      ("\(pages)/Differences.md", DifferencePage(rules).text),
      ("Tests/Rules/RuleID.swift", RuleNames(rules: rules).source),
    ]
  }

  /// How many rules there are, and what shows them.
  var summary: String {
    let rules = chapters.flatMap(\.rules)
    let withPrograms = rules.count { !$0.rulesWithPrograms(in: chapters).isEmpty }
    let withTests = rules.count { tests[$0.name] != nil }
    return "\(rules.count) rules: \(withPrograms) shown by programs, \(withTests) by tests"
  }

  /// What is wrong with what shows a rule.
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
