// SPDX-License-Identifier: Apache-2.0

/// The source file with the names of the rules, for tests.
struct RuleNames {
  var rules: [Rule]

  var source: String {
    """
    // SPDX-License-Identifier: Apache-2.0

    // This file is made by `Documentation/rules` of the list of rules in `Conformance`.

    /// A rule of the documentation's page of rules, by its name.
    package enum RuleID: String, CaseIterable, Sendable {
    \(rules.map(Self.source).joined())}

    """
  }

  private static func source(_ rule: Rule) -> String {
    let comment = lines(of: rule.here ?? rule.statement, width: 114).map { "  /// \($0)\n" }.joined()
    return "\(comment)  case \(rule.name.lowercased()) = \"\(rule.name)\"\n"
  }

  private static func lines(of text: String, width: Int) -> [String] {
    var lines: [String] = []
    for word in text.split(separator: " ") {
      if let last = lines.last, last.count + 1 + word.count <= width {
        lines[lines.count - 1] += " \(word)"
      } else {
        lines.append(String(word))
      }
    }
    return lines
  }
}
