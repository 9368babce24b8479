// SPDX-License-Identifier: Apache-2.0

extension ConformanceCommand {
  /// Compares a series, and prints the results.
  func run(_ series: Series, _ comparison: Comparison) -> Int32 {
    print("seed \(series.seed), \(series.numbers.count) programs")
    let report = series.run()
    for (number, disagreement) in report.different.sorted(by: { $0.key < $1.key }) {
      explain(number, disagreement, report, series, comparison)
    }
    for (difference, count) in report.parts.sorted(by: { $0.key < $1.key }) {
      print("\(difference) \(count), alone \(report.named[[difference]] ?? 0)")
    }
    if report.count < series.numbers.count { print("ended after \(report.count) programs") }
    print("equal \(report.equal), named difference \(report.namedCount), different \(report.different.count)")
    return report.different.isEmpty ? 0 : 1
  }

  private func explain(
    _ number: Int, _ disagreement: Comparison.Disagreement, _ report: Series.Report, _ series: Series,
    _ comparison: Comparison
  ) {
    let title = "program \(number) of seed \(series.seed)"
    print("\n\(title): \(disagreement)")
    if let logs = report.logs[number] { print("\(logs)") }
    guard !disagreement.contains(.hung) else { return print("\(series.program(number))") }
    let program = series.program(number)
    let length = comparison.logs(of: program).length
    var shrinker = Shrinker()
    // A shorter program may have a longer log.
    let smallest = shrinker.smallest(program) { simpler in
      comparison.verdict(on: simpler) == .different(disagreement) && comparison.logs(of: simpler).length <= length
    }
    print("The smallest program found in \(shrinker.tries) tries that differs so:\n")
    _ = show(smallest, title, comparison)
  }

  /// Prints a program as a test, and its logs.
  func show(_ program: Program, _ title: String, _ comparison: Comparison) -> Int32 {
    let logs = comparison.logs(of: program)
    print(ScriptedTest(title: title, program: program, logs: logs).source)
    if logs.modelOfCoreFoundation != logs.coreFoundation {
      print("\n  Core Foundation: \(logs.coreFoundation)\n  the model of it: \(logs.modelOfCoreFoundation)")
    }
    if logs.modelOfOurs != logs.ours {
      print("\n  ours:            \(logs.ours)\n  the model of it: \(logs.modelOfOurs)")
    }
    let verdict = comparison.verdict(on: program)
    print("\n  \(verdict)\n")
    if case .different = verdict { return 1 }
    return 0
  }
}

extension Comparison.Disagreement: CustomStringConvertible {
  package var description: String {
    if contains(.hung) { return "a loop does not come to an end" }
    var loops: [String] = []
    if contains(.coreFoundation) { loops.append("Core Foundation's loop") }
    if contains(.ours) { loops.append("our loop") }
    return loops.joined(separator: " and ") + (loops.count > 1 ? " do" : " does") + " not do what the model says"
  }
}

extension Comparison.Verdict: CustomStringConvertible {
  package var description: String {
    switch self {
    case .equal: "equal"
    case .named(let differences): "named " + differences.sorted().map(\.description).joined(separator: " ")
    case .different(let disagreement): "different: \(disagreement)"
    }
  }
}

extension Comparison.Logs {
  fileprivate var length: Int { coreFoundation.entries.count + ours.entries.count }
}
