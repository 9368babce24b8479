// SPDX-License-Identifier: Apache-2.0

/// A test that names the rules that it demonstrates.
struct NamedTest: Equatable {
  var suite: String
  var title: String
  var rules: [String]
}

/// Parses one file of tests, line by line.
///
/// A test or a suite of Swift Testing has the trait `.rule(.r34, .m16)`. An XCTest test has a comment above it, `//
/// R34, M16`.
struct TestFile {
  private(set) var tests: [NamedTest] = []
  /// The errors in the file, with line numbers.
  private(set) var mistakes: [String] = []
  private var suite: String
  /// The rules of a comment whose test follows.
  private var rules: [String] = []
  /// The beginning of an attribute that continues on the next line.
  private var attribute: String?
  /// Whether the line is within a multiline string, whose contents are skipped.
  private var isInString = false

  /// Parses a file; the suite has the file's name unless the file declares another.
  init(name: String, text: String) {
    suite = name
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      if let mistake = read(line.drop { $0 == " " }) { mistakes.append("line \(index + 1): \(mistake)") }
    }
  }

  /// Parses a line without its indentation, and returns an error, if any.
  private mutating func read(_ line: Substring) -> String? {
    let wasInString = isInString
    if line.matches(of: /"""/).count % 2 == 1 { isInString.toggle() }
    if wasInString { return nil }
    if let text = attribute { return readAttribute(text + " " + line) }
    if line.hasPrefix("// "), line.dropFirst(3).split(separator: ", ").allSatisfy(Self.isName) {
      defer { rules = line.dropFirst(3).split(separator: ", ").map(String.init) }
      return rules.isEmpty ? nil : "a comment with rules is not above its test"
    }
    if line.hasPrefix("@Test") || line.hasPrefix("@Suite") { return readAttribute(String(line)) }
    if let function = line.firstMatch(of: /\bfunc (test[A-Za-z0-9_]*)\(/)?.output.1, !rules.isEmpty {
      tests.append(NamedTest(suite: suite, title: Self.words(function), rules: rules))
      rules = []
    } else if let type = line.firstMatch(of: /\bclass ([A-Za-z0-9_]+): XCTestCase/)?.output.1 {
      suite = String(type)
    } else if !line.hasPrefix("//"), !line.hasPrefix("@"), !rules.isEmpty {
      rules = []
      return "no test follows the comment with rules above"
    }
    return nil
  }

  /// Reads an attribute of Swift Testing, once its parentheses are closed.
  private mutating func readAttribute(_ text: String) -> String? {
    let code = text.replacing(/"(\\.|[^"\\])*"/, with: "")
    guard code.count(where: { $0 == "(" }) == code.count(where: { $0 == ")" }) else {
      attribute = text
      return nil
    }
    attribute = nil
    let title = text.firstMatch(of: /@(Suite|Test)\(\s*"((\\.|[^"\\])*)"/).map { match in
      String(match.output.2).replacing(/\\(.)/) { String($0.output.1) }
    }
    let names = code.matches(of: /\.rule\(([^)]*)\)/).flatMap { $0.output.1.split(separator: ",") }
    let named = names.map { name in Self.name(of: name.filter { $0 != " " && $0 != "." }) }
    if code.hasPrefix("@Suite") {
      suite = title ?? suite
      if !named.isEmpty { tests.append(NamedTest(suite: suite, title: "every test", rules: named)) }
      return nil
    }
    defer { rules = [] }
    if !named.isEmpty, let title { tests.append(NamedTest(suite: suite, title: title, rules: named)) }
    if !named.isEmpty, title == nil { return "a test that names rules has no title" }
    return rules.isEmpty ? nil : "a comment names the rules of a test that can have the trait .rule"
  }

  /// Whether a word is spelt as the name of a rule is: a letter, a number, perhaps a small letter.
  private static func isName(_ word: Substring) -> Bool { word.wholeMatch(of: /[RM][0-9]+[a-g]?/) != nil }

  /// The name of a rule by that of its case: "r28a" is R28a.
  private static func name(of word: String) -> String { word.prefix(1).uppercased() + word.dropFirst() }

  /// The title that a test of XCTest has in its function's name: "testAStopEndsARun" is "a stop ends a run".
  private static func words(_ function: Substring) -> String {
    var title = ""
    for letter in function.dropFirst("test".count) {
      if letter.isUppercase, !title.isEmpty { title += " " }
      title += letter.lowercased()
    }
    return title
  }
}
