// SPDX-License-Identifier: Apache-2.0

// Makes the page that names, for each rule, the tests that show it.
//
//   rules <rules.txt> <page> <folder of tests>... [--check | --incomplete]
//
// It fails if a rule has neither a test nor a reason, or both, or if a comment over a test names no rule. `--check`
// compares the page and writes nothing; `--incomplete` lists what is missing and writes the page all the same.

import Foundation

struct Rule {
  var id: String
  var statement: String
  var reason: String?
  var tests: [Test] = []
}

struct Section {
  var title: String
  var rules: [Rule] = []
}

struct Test {
  var suite: String
  var title: String
}

/// What is wrong with the rules or the tests.
struct Failure: Error {
  var lines: [String]
}

/// Whether a word is spelt as the name of a rule is: a letter, a number, perhaps a small letter.
func isRuleName(_ word: Substring) -> Bool { word.wholeMatch(of: /[RM][0-9]+[a-g]?/) != nil }

// MARK: The list of rules

func readRules(_ path: String) throws -> [Section] {
  var sections: [Section] = []
  var names: Set<Substring> = []
  var wrong: [String] = []
  for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") where !line.hasPrefix("//") {
    if line.hasPrefix("# ") {
      sections.append(Section(title: String(line.dropFirst(2))))
      continue
    }
    let columns = line.split(separator: " | ", omittingEmptySubsequences: false)
    guard 2...3 ~= columns.count, isRuleName(columns[0]), names.insert(columns[0]).inserted, !sections.isEmpty else {
      wrong.append("\(path): not a rule, or one that is there already: \(line)")
      continue
    }
    let reason = columns.count == 3 ? String(columns[2]) : nil
    sections[sections.count - 1].rules.append(
      Rule(id: String(columns[0]), statement: String(columns[1]), reason: reason))
  }
  guard wrong.isEmpty else { throw Failure(lines: wrong) }
  return sections
}

// MARK: The tests

/// The tests that name rules, in the order of the files' names in their folder and of the lines.
func readTests(_ folders: [String]) throws -> [(test: Test, rules: [String])] {
  var files: [(name: String, folder: String)] = []
  for folder in folders {
    guard let names = FileManager.default.enumerator(atPath: folder) else {
      throw Failure(lines: ["\(folder): no such folder"])
    }
    files += names.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }.map { ($0, folder) }
  }
  var found: [(test: Test, rules: [String])] = []
  var wrong: [String] = []
  for (name, folder) in files.sorted(by: { $0.name < $1.name }) {
    do {
      found += try TestFile(folder + "/" + name).tests
    } catch let failure as Failure {
      wrong += failure.lines
    }
  }
  guard wrong.isEmpty else { throw Failure(lines: wrong) }
  return found
}

/// One file of tests, read line by line.
struct TestFile {
  private(set) var tests: [(test: Test, rules: [String])] = []
  private var suite: String
  /// The rules of a comment whose test has not come yet.
  private var rules: [String] = []
  private var title: String?
  /// The attribute whose title or end has not come yet.
  private var attribute: String?

  init(_ path: String) throws {
    suite = String(path.split(separator: "/").last ?? "").replacingOccurrences(of: ".swift", with: "")
    var wrong: [String] = []
    let lines = try String(contentsOfFile: path, encoding: .utf8)
      .split(separator: "\n", omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      if let message = read(line.drop { $0 == " " }) { wrong.append("\(path):\(index + 1): \(message)") }
    }
    guard wrong.isEmpty else { throw Failure(lines: wrong) }
  }

  /// Reads a line without its indent; gives back what is wrong with it.
  private mutating func read(_ line: Substring) -> String? {
    if let text = attribute {
      continueAttribute(text + " " + line)
    } else if line.hasPrefix("// "), line.dropFirst(3).split(separator: ", ").allSatisfy(isRuleName) {
      defer { rules = line.dropFirst(3).split(separator: ", ").map(String.init) }
      return rules.isEmpty ? nil : "rules over rules: a comment must stand over its test"
    } else if line.hasPrefix("@") {
      continueAttribute(String(line))
    } else if let function = line.firstMatch(of: /\bfunc ([A-Za-z0-9_]+)/)?.output.1 {
      return endTest(function)
    } else if let type = line.firstMatch(of: /\bclass ([A-Za-z0-9_]+): XCTestCase/)?.output.1 {
      suite = String(type)
    } else if !line.hasPrefix("//"), !rules.isEmpty {
      rules = []
      return "the comment above names rules, and no test follows it"
    }
    return nil
  }

  /// Takes the title of an attribute that is a suite or a test, once its parentheses are closed.
  private mutating func continueAttribute(_ text: String) {
    let code = text.replacing(/"(\\.|[^"\\])*"/, with: "")
    guard code.count(where: { $0 == "(" }) == code.count(where: { $0 == ")" }) else {
      attribute = text
      return
    }
    attribute = nil
    let title = text.firstMatch(of: /@(Suite|Test)\(\s*"((\\.|[^"\\])*)"/).map { match in
      String(match.output.2).replacing(/\\(.)/) { String($0.output.1) }
    }
    guard let title else { return }
    if text.hasPrefix("@Suite") { suite = title } else { self.title = title }
    // A test whose function stands on the same line.
    if let function = code.firstMatch(of: /\bfunc ([A-Za-z0-9_]+)/)?.output.1 { _ = endTest(function) }
  }

  private mutating func endTest(_ function: Substring) -> String? {
    defer {
      rules = []
      title = nil
    }
    guard !rules.isEmpty else { return nil }
    guard title != nil || function.hasPrefix("test") else {
      return "the comment above names rules, and \(function) is no test with a title"
    }
    tests.append((Test(suite: suite, title: title ?? words(function)), rules))
    return nil
  }
}

/// The title that a test of XCTest has in its function's name: "testAStopEndsARun" is "a stop ends a run".
func words(_ function: Substring) -> String {
  var title = ""
  for letter in function.dropFirst("test".count) {
    if letter.isUppercase, !title.isEmpty { title += " " }
    title += letter.lowercased()
  }
  return title
}

// MARK: The page

extension Rule {
  /// The last cell of the rule's row: its first tests by suite, or why there is none.
  var evidence: String {
    guard !tests.isEmpty else { return reason.map { "*None.* \($0)" } ?? "*Not yet.*" }
    let shown = 3
    var cell = ""
    var suite: String?
    for test in tests.prefix(shown) {
      cell += suite == test.suite ? "; " : (suite == nil ? "" : ". ") + "*\(test.suite)*: "
      cell += test.title
      suite = test.suite
    }
    return tests.count > shown ? "\(cell); and \(tests.count - shown) more" : cell
  }
}

func page(_ sections: [Section]) -> String {
  var text = """
    # The rules

    What this run loop does, rule by rule, and the tests that show it.

    ## Overview

    R: a rule of Core Foundation's loop, as it holds here. M: a difference, which <doc:Differences> explains. A test
    names its rules in the comment above it.

    This page is made by `Documentation/rules` from `Documentation/rules.txt` and the tests.

    """
  for section in sections {
    text += "\n## \(section.title)\n\n| Rule | What it says | Test |\n|---|---|---|\n"
    for rule in section.rules {
      let cells = [rule.id, rule.statement, rule.evidence].map { $0.replacingOccurrences(of: "|", with: "\\|") }
      text += "| " + cells.joined(separator: " | ") + " |\n"
    }
  }
  return text
}

// MARK: The program

/// Puts the tests to their rules; gives back what is wrong with them.
func assign(_ tests: [(test: Test, rules: [String])], to sections: inout [Section]) -> [String] {
  var places: [String: (section: Int, rule: Int)] = [:]
  for (section, rules) in sections.map(\.rules).enumerated() {
    for (rule, name) in rules.map(\.id).enumerated() { places[name] = (section, rule) }
  }
  var wrong: [String] = []
  for (test, names) in tests {
    for name in names {
      if let place = places[name] {
        sections[place.section].rules[place.rule].tests.append(test)
      } else {
        wrong.append("there is no rule \(name), which is named by the test \"\(test.title)\" of \"\(test.suite)\"")
      }
    }
  }
  for rule in sections.flatMap(\.rules) where rule.reason != nil && !rule.tests.isEmpty {
    wrong.append("the rule \(rule.id) has a test, and a reason to have none")
  }
  return wrong
}

func makePage(rules: String, tests folders: [String], page path: String, option: String?) throws {
  var sections = try readRules(rules)
  let wrong = assign(try readTests(folders), to: &sections)
  let all = sections.flatMap(\.rules)
  let missing = all.filter { $0.tests.isEmpty && $0.reason == nil }.map(\.id)
  let missingLine = "no test and no reason: " + missing.joined(separator: " ")
  guard wrong.isEmpty, missing.isEmpty || option == "--incomplete" else {
    throw Failure(lines: wrong + (missing.isEmpty ? [] : [missingLine]))
  }
  let text = page(sections)
  if option == "--check" {
    guard try String(contentsOfFile: path, encoding: .utf8) == text else {
      throw Failure(lines: ["\(path) is not current: run Documentation/rules"])
    }
  } else {
    try text.write(toFile: path, atomically: true, encoding: .utf8)
  }
  let shown = all.count { !$0.tests.isEmpty }
  print("\(all.count) rules: \(shown) shown by tests, \(all.count { $0.reason != nil }) with a reason")
  if !missing.isEmpty { print(missingLine) }
}

var arguments = Array(CommandLine.arguments.dropFirst())
let option = arguments.last.flatMap { ["--check", "--incomplete"].contains($0) ? $0 : nil }
if option != nil { arguments.removeLast() }
guard arguments.count >= 3, !arguments.contains(where: { $0.hasPrefix("-") }) else {
  print("usage: rules <rules.txt> <page> <folder of tests>... [--check | --incomplete]")
  exit(2)
}
do {
  try makePage(rules: arguments[0], tests: Array(arguments[2...]), page: arguments[1], option: option)
} catch {
  let lines = (error as? Failure)?.lines ?? ["\(error)"]
  FileHandle.standardError.write(Data((lines.joined(separator: "\n") + "\n").utf8))
  exit(1)
}
