// SPDX-License-Identifier: Apache-2.0

/// The observations of an experiment, with the literals that it requires.
struct Outcome: Sendable, Hashable {
  /// One observation.
  struct Observation: Sendable, Hashable {
    /// The subject of the observation.
    let subject: String
    /// The observed behavior of the loop.
    let observed: String
    /// The behavior that is required for the experiment to hold.
    let required: String

    var holds: Bool { observed == required }
  }

  /// All observations, in order.
  private(set) var observations: [Observation] = []

  /// Whether all observations are as required, and there is at least one.
  var holds: Bool { !observations.isEmpty && observations.allSatisfy(\.holds) }

  /// Adds an observation.
  mutating func observe(_ subject: String, _ observed: String, requires required: String) {
    observations.append(Observation(subject: subject, observed: observed, required: required))
  }
}
