// SPDX-License-Identifier: Apache-2.0

/// A rule of the run loop, and its evidence.
///
/// All chapters together are the single list of rules, from which the documentation's pages of rules, logs and
/// differences, and the names for tests are generated.
package struct Rule: Sendable {
  /// The name that the documentation and the tests use.
  ///
  /// R and a number for a rule of Core Foundation's loop or Foundation's runs, M and a number for a difference.
  package var name: String
  /// The behavior of both loops; of Core Foundation's if ours differs; of ours for a difference.
  package var statement: String
  /// The behavior of our loop if it differs, with the names of the differences.
  package var here: String?
  package var evidence: Evidence
  /// The explanation of a difference.
  package var difference: DifferenceText?

  package enum Evidence: Sendable {
    /// Programs of one thread demonstrate it, and operations on the loop while that thread waits.
    case programs([Script])
    /// Programs of other rules demonstrate it, because their logs differ by it.
    case programsOfRules
    /// Only a test demonstrates it; no program can, for this reason.
    case tests(reason: String)
    /// It has neither a program nor a test, for this reason.
    case none(reason: String)
  }

  /// Creates a rule that programs demonstrate.
  init(_ name: String, _ statement: String, here: String? = nil, _ scripts: Script...) {
    self.init(name, statement, here: here, .programs(scripts))
  }

  /// Creates a rule that only a test demonstrates.
  init(_ name: String, _ statement: String, here: String? = nil, notShown reason: String) {
    self.init(name, statement, here: here, .tests(reason: reason))
  }

  /// Creates a rule without evidence.
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

  /// The reason why no program demonstrates it.
  package var reason: String? {
    switch evidence {
    case .programs, .programsOfRules: nil
    case .tests(let reason), .none(let reason): reason
    }
  }

  /// The differences that the text about our loop refers to.
  package var namedDifferences: [String] { (here ?? "").matches(of: /\bM[0-9]+\b/).map { String($0.output) } }
}

/// The text about a difference on the documentation's page.
package struct DifferenceText: Sendable {
  package var title: String
  /// The subject of the difference, in a few words.
  package var topic: String
  package var text: String
}

/// A program, and its logs on both loops.
package struct Script: Sendable {
  package var program: Program
  /// The log of Core Foundation's loop.
  package var coreFoundation: String
  /// The log of our loop.
  package var ours: String
  /// The reasons why the logs differ, or none if they are equal.
  package var differences: Set<Difference>

  /// Creates a program with the same log on both loops.
  init(_ program: Program, _ log: String) {
    self.init(program, coreFoundation: log, ours: log, [])
  }

  /// Creates a program with different logs, and the reasons.
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
