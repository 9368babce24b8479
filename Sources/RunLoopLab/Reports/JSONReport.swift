// Reports for programs.

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
      ("holds", outcome.holds ? "true" : "false"),
      ("seconds", jsonSeconds(duration)),
    ]
    return "{" + members.map { "\(jsonString($0)): \($1)" }.joined(separator: ", ") + "}"
  }
}

/// Reports as one JSON array.
func json(of reports: [Report]) -> String {
  "[\n" + reports.map { "  " + $0.json }.joined(separator: ",\n") + "\n]"
}

/// A string as JSON has it, in quotes.
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

/// The seconds of a duration as a JSON number with six decimals.
func jsonSeconds(_ duration: Duration) -> String {
  let (seconds, attoseconds) = duration.components
  return "\(seconds).\(padded(attoseconds / 1_000_000_000_000, to: 6))"
}
