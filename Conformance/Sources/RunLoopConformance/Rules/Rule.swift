// SPDX-License-Identifier: Apache-2.0

/// A rule of the run loop, and what shows it.
///
/// The rules of all chapters are the one list of them: the documentation's pages of rules, of logs and of differences,
/// and the names by which tests say what they show, are made of it.
package struct Rule: Sendable {
  /// The name by which the documentation and the tests refer to it.
  ///
  /// R and a number for a rule of Core Foundation's loop or Foundation's runs, M and a number for a difference.
  package var name: String
  /// What both loops do; what Core Foundation's does, if ours differs; of a difference, what ours does.
  package var statement: String
  /// What our loop does instead, with the names of the differences.
  package var here: String?
  package var evidence: Evidence
  /// The explanation of a difference.
  package var difference: DifferenceText?

  package enum Evidence: Sendable {
    /// Programs of one thread show it, and what is done to a loop while that thread waits.
    case programs([Script])
    /// Programs of rules show it that differ by this difference.
    case programsOfRules
    /// No program shows it, for this reason; a test does.
    case tests(reason: String)
    /// Neither a program nor a test shows it, for this reason.
    case none(reason: String)
  }

  /// A rule that programs show.
  init(_ name: String, _ statement: String, here: String? = nil, _ scripts: Script...) {
    self.init(name, statement, here: here, .programs(scripts))
  }

  /// A rule that no program shows, but a test.
  init(_ name: String, _ statement: String, here: String? = nil, notShown reason: String) {
    self.init(name, statement, here: here, .tests(reason: reason))
  }

  /// A rule that nothing shows.
  init(_ name: String, _ statement: String, here: String? = nil, notTested reason: String) {
    self.init(name, statement, here: here, .none(reason: reason))
  }

  init(
    _ name: String, _ statement: String, here: String? = nil, _ evidence: Evidence, difference: DifferenceText? = nil
  ) {
    self.name = name
    self.statement = statement
    self.here = here
    self.evidence = evidence
    self.difference = difference
  }

  package var scripts: [Script] {
    guard case .programs(let scripts) = evidence else { return [] }
    return scripts
  }

  /// Why no program shows it.
  package var reason: String? {
    switch evidence {
    case .programs, .programsOfRules: nil
    case .tests(let reason), .none(let reason): reason
    }
  }

  /// The differences that the text of our loop refers to.
  package var namedDifferences: [String] { (here ?? "").matches(of: /\bM[0-9]+\b/).map { String($0.output) } }
}

/// What the documentation's page of differences says of one.
package struct DifferenceText: Sendable {
  package var title: String
  /// What the difference is about, in a few words.
  package var topic: String
  package var text: String
}

/// A program, and the logs that it gives on both loops.
package struct Script: Sendable {
  package var program: Program
  /// What Core Foundation's loop logs.
  package var coreFoundation: String
  /// What our loop logs.
  package var ours: String
  /// Why the logs differ; empty if they are the same.
  package var differences: Set<Difference>

  /// A program whose logs are the same on both loops.
  init(_ program: Program, _ log: String) {
    self.init(program, coreFoundation: log, ours: log, [])
  }

  /// A program whose logs differ, and for what reason.
  init(_ program: Program, coreFoundation: String, ours: String, _ differences: Set<Difference>) {
    self.program = program
    self.coreFoundation = coreFoundation
    self.ours = ours
    self.differences = differences
  }
}

/// The rules of one part of the loop.
package struct RuleChapter: Sendable {
  package var title: String
  package var rules: [Rule]

  /// Every rule, in the order of the numbers: those of Core Foundation's loop and of Foundation, then the differences.
  package static let all = ofCoreFoundation + [differences]

  /// The rules of Core Foundation's loop, and of Foundation's runs.
  package static let ofCoreFoundation = [
    runs, modes, stops, wakeUps, blocks, sources, descriptors, observers, timers, commonModes, nestedRuns, mainQueue,
    threads, foundation,
  ]
}
