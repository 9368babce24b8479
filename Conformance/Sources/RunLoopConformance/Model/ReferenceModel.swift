// SPDX-License-Identifier: Apache-2.0

/// A run loop according to the rules, as plain values without threads or a kernel.
///
/// Without switches it returns Core Foundation's log of a program, with all of them ours. Each switch changes one
/// rule.
package struct ReferenceModel: Machine {
  /// The rules that are changed.
  package let switches: Set<Difference>

  /// Creates a model of Core Foundation's loop with some rules changed.
  package init(switches: Set<Difference> = []) {
    self.switches = switches
  }

  /// The model of our loop.
  package static let ours = ReferenceModel(switches: Set(Difference.allCases))

  /// Runs a program on a new loop, and returns its deterministic log.
  package func run(_ program: Program) -> Log {
    var loop = ModelLoop(program, Switches(switches))
    loop.perform(program.main)
    loop.end()
    return loop.log
  }
}
