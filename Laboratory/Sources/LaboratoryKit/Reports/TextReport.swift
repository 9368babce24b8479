// SPDX-License-Identifier: Apache-2.0

// Reports in plain text, a hundred columns wide.

extension Report {
  /// Returns the report as several lines of text.
  func text(verbose: Bool) -> String {
    var lines = ["\(experiment.id)  \(experiment.title)"]
    lines += section("claim", [experiment.claim])
    lines += section("by", experiment.articles.map(\.citation))
    if verbose, !log.isEmpty {
      lines += section("log", log)
    }
    lines += section("observed", outcome.observations.flatMap(\.paragraphs))
    let verdict = experiment.verdict.correction.map { "\(experiment.verdict.word): \($0)" } ?? experiment.verdict.word
    lines += section("verdict", [verdict])
    lines += section("evidence", [experiment.evidence])
    lines += section("here", [experiment.difference.sentence])
    lines += section("holds", [outcome.holds ? "yes" : "no: the verdict is not supported by what was observed"])
    return lines.joined(separator: "\n")
  }

  /// Formats paragraphs with a heading to the left of the first.
  private func section(_ heading: String, _ paragraphs: [String]) -> [String] {
    let margin = 14
    let lines = paragraphs.flatMap { wrapped($0, width: 100 - margin) }
    return lines.enumerated().map { index, line in
      let head = index == 0 ? "    \(heading)" : ""
      return head + String(repeating: " ", count: margin - head.count) + line
    }
  }
}

extension Difference {
  /// The difference, preceded by its numbers.
  fileprivate var sentence: String {
    switch self {
    case .nothing: "the same"
    case .numbered(let numbers, let text): "otherwise (\(numbers.joined(separator: ", "))): \(text)"
    case .addition(let text): text
    }
  }
}

extension Outcome.Observation {
  /// The subject, the observation and, if it differs, the requirement.
  fileprivate var paragraphs: [String] {
    let lines = [subject, "  -> \(observed)"]
    return holds ? lines : lines + ["  required: \(required)"]
  }
}

/// Returns the last two lines: the number of experiments that hold, and their verdicts.
func summary(of reports: [Report]) -> String {
  let held = reports.filter(\.outcome.holds)
  let failed = reports.filter { !$0.outcome.holds }.map(\.experiment.id)
  var text = "\(held.count) of \(reports.count) experiments hold"
  if !failed.isEmpty { text += "; these do not: \(failed.joined(separator: ", "))" }
  let verdicts = ["confirmed", "corrected", "refuted"].map { word in
    "\(held.count { $0.experiment.verdict.word == word }) \(word)"
  }
  let differ = held.count { !$0.experiment.difference.numbers.isEmpty }
  return text + ".\nThe articles' claims about Apple's loop: " + verdicts.joined(separator: ", ")
    + "; otherwise here: \(differ)."
}

/// Breaks a paragraph into lines at its spaces; the lines after the first are indented by two more columns.
///
/// A word that is longer than a line has its own line. Every line keeps the leading spaces.
func wrapped(_ paragraph: String, width: Int) -> [String] {
  let leading = String(paragraph.prefix { $0 == " " })
  var lines: [String] = []
  var line = leading
  var isLineEmpty = true
  for word in paragraph.dropFirst(leading.count).split(separator: " ", omittingEmptySubsequences: false) {
    if !isLineEmpty, line.count + 1 + word.count > width {
      lines.append(line)
      line = leading + "  "
      isLineEmpty = true
    }
    line += isLineEmpty ? String(word) : " \(word)"
    isLineEmpty = false
  }
  return lines + [line]
}
