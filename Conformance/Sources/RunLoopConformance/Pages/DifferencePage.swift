// SPDX-License-Identifier: Apache-2.0

/// The documentation's page of the differences from Core Foundation's loop.
struct DifferencePage {
  var differences: [(name: String, text: DifferenceText)]

  init(_ rules: [Rule]) {
    differences = rules.compactMap { rule in rule.difference.map { (rule.name, $0) } }
  }

  var text: String {
    let index = differences.map { "| <doc:Differences#\(Self.anchor("\($0): \($1.title)"))> | \($1.topic) |\n" }
    let sections = differences.map { "\n### \($0): \($1.title)\n\n\($1.text)\n" }
    return """
      # Differences from CFRunLoop

      Where this loop behaves differently from Core Foundation's, and why.

      ## Overview

      The rules are those of `CFRunLoop`, as Core Foundation implements it on Linux, unless this page says otherwise. Each
      difference has a number. <doc:Rules> names what shows it, and <doc:Conformance> has the logs of both loops.

      This page is made by `Documentation/rules` of the list of rules in `Conformance`.

      ### Index

      | | about |
      | --- | --- |
      \(index.joined())
      ## The differences

      """ + sections.joined()
  }

  /// Returns the anchor of a heading.
  private static func anchor(_ heading: String) -> String {
    String(
      heading.compactMap { character in
        if character == " " { return "-" }
        return character.isLetter || character.isNumber || character == "-" ? character : nil
      })
  }
}
