// SPDX-License-Identifier: Apache-2.0

// Machine-readable reports.

extension Report {
  /// The report as a JSON object.
  var json: String {
    let observed = outcome.observations.map { "\($0.subject) -> \($0.observed)" }.joined(separator: "; ")
    let members = [
      ("id", jsonString(experiment.id)),
      ("title", jsonString(experiment.title)),
      ("claim", jsonString(experiment.claim)),
      ("observed", jsonString(observed)),
      ("verdict", jsonString(experiment.verdict.word)),
      ("correction", experiment.verdict.correction.map(jsonString) ?? "null"),
      ("evidence", jsonString(experiment.evidence)),
      ("differences", jsonArray(experiment.difference.numbers.map(jsonString))),
      ("difference", experiment.difference.text.map(jsonString) ?? "null"),
      ("documents", jsonArray(experiment.articles.map { jsonString($0.document) })),
      ("articles", jsonArray(experiment.articles.map(\.json))),
      ("holds", outcome.holds ? "true" : "false"),
      ("seconds", jsonSeconds(duration)),
    ]
    return "{" + members.map { "\(jsonString($0)): \($1)" }.joined(separator: ", ") + "}"
  }
}

extension Article {
  /// The article as a JSON object.
  fileprivate var json: String {
    "{\"document\": \(jsonString(document)), \"author\": \(jsonString(fullName)), \"title\": \(jsonString(title))}"
  }
}

/// Formats JSON values as a JSON array on one line.
private func jsonArray(_ values: [String]) -> String { "[\(values.joined(separator: ", "))]" }

/// Formats reports as one JSON array.
func json(of reports: [Report]) -> String {
  "[\n" + reports.map { "  " + $0.json }.joined(separator: ",\n") + "\n]"
}

/// Formats a string as a JSON literal, with quotes.
func jsonString(_ string: String) -> String {
  var text = "\""
  for scalar in string.unicodeScalars {
    switch scalar {
    case "\"": text += "\\\""
    case "\\": text += "\\\\"
    case "\n": text += "\\n"
    case "\r": text += "\\r"
    case "\t": text += "\\t"
    case "\u{0}"..<" ":
      let digits = String(scalar.value, radix: 16)
      text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    default: text.unicodeScalars.append(scalar)
    }
  }
  return text + "\""
}

/// Formats the seconds of a duration as a JSON number with six decimals.
func jsonSeconds(_ duration: Duration) -> String {
  let (seconds, attoseconds) = duration.components
  return "\(seconds).\(padded(attoseconds / 1_000_000_000_000, to: 6))"
}
