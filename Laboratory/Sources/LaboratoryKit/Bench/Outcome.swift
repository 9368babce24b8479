// SPDX-License-Identifier: Apache-2.0

/// What an experiment observed, beside the literals that it requires.
struct Outcome: Sendable, Hashable {
  /// One thing that was observed.
  struct Observation: Sendable, Hashable {
    /// What was looked at.
    let subject: String
    /// What the loop did.
    let observed: String
    /// What it has to do for the experiment to hold.
    let required: String

    var holds: Bool { observed == required }
  }

  /// All that was observed, in order.
  private(set) var observations: [Observation] = []

  /// Whether everything was observed as required.
  ///
  /// An outcome without an observation shows nothing and does not hold.
  var holds: Bool { !observations.isEmpty && observations.allSatisfy(\.holds) }

  /// Notes one thing that was observed.
  mutating func observe(_ subject: String, _ observed: String, requires required: String) {
    observations.append(Observation(subject: subject, observed: observed, required: required))
  }
}
