// SPDX-License-Identifier: Apache-2.0

/// A rule of Core Foundation's run loop, and what shows how far ours keeps it.
package struct Rule: Sendable {
  /// The number by which the documentation and the tests name it.
  package var name: String
  /// What Core Foundation's loop does.
  package var statement: String
  package var evidence: Evidence

  package enum Evidence: Sendable {
    /// Programs of one thread show it, and what is done to a loop while that thread waits.
    case programs([Script])
    /// No program shows it; if a test does for our loop, the test's title.
    case none(reason: String, test: String?)
  }

  init(_ name: String, _ statement: String, _ scripts: Script...) {
    self.name = name
    self.statement = statement
    self.evidence = .programs(scripts)
  }

  /// A rule that no program shows.
  init(_ name: String, _ statement: String, notShown reason: String, test: String? = nil) {
    self.name = name
    self.statement = statement
    self.evidence = .none(reason: reason, test: test)
  }

  package var scripts: [Script] {
    guard case .programs(let scripts) = evidence else { return [] }
    return scripts
  }
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

  /// Every rule from R1 to R120, in the order of the numbers.
  package static let all = [
    runs, modes, stops, wakeUps, blocks, sources, descriptors, observers, timers, commonModes, nestedRuns, mainQueue,
    threads,
  ]
}
