// SPDX-License-Identifier: Apache-2.0

/// The differences that concern one part of the loop, with their explanations.
struct DifferenceTopic: Sendable {
  var title: String
  var rules: [Rule]

  struct Entry: Sendable {
    fileprivate var name: String
    fileprivate var title: String
    fileprivate var statement: String
    fileprivate var evidence: Rule.Evidence
    fileprivate var text: String

    /// Creates a difference that the programs of rules demonstrate.
    init(_ name: String, title: String, _ statement: String, _ text: String) {
      self.init(name, title, statement, .programsOfRules, text)
    }

    /// Creates a difference that only a test demonstrates.
    init(_ name: String, title: String, _ statement: String, notShown reason: String, _ text: String) {
      self.init(name, title, statement, .tests(reason: reason), text)
    }

    /// Creates a difference without evidence.
    init(_ name: String, title: String, _ statement: String, notTested reason: String, _ text: String) {
      self.init(name, title, statement, .none(reason: reason), text)
    }

    private init(_ name: String, _ title: String, _ statement: String, _ evidence: Rule.Evidence, _ text: String) {
      self.name = name
      self.title = title
      self.statement = statement
      self.evidence = evidence
      self.text = text
    }
  }

  init(_ title: String, _ entries: [Entry]) {
    self.title = title
    rules = entries.map {
      Rule(
        $0.name, $0.statement, $0.evidence,
        difference: DifferenceText(title: $0.title, topic: title, text: $0.text))
    }
  }
}

extension RuleChapter {
  static let differences = RuleChapter(
    title: "Differences",
    rules: [
      DifferenceTopic.passes, .waking, .items, .timers, .commonModes, .threads,
    ].flatMap(\.rules).sorted { $0.number < $1.number })
}

extension Rule {
  /// The number in its name.
  var number: Int { Int(name.filter(\.isNumber)) ?? 0 }
}
