// SPDX-License-Identifier: Apache-2.0

/// A run loop as the rules have it: plain values, no thread and no kernel.
///
/// Without switches it gives Core Foundation's log of a program, with all of them ours. Each switch changes one rule,
/// at the rule's place.
package struct ReferenceModel: Machine {
  /// The rules that are changed.
  package let switches: Set<Difference>

  /// A model of Core Foundation's loop, but for some rules.
  package init(switches: Set<Difference> = []) {
    self.switches = switches
  }

  /// The model of our loop.
  package static let ours = ReferenceModel(switches: Set(Difference.allCases))

  /// Runs a program on a new loop.
  ///
  /// The log is the same every time.
  package func run(_ program: Program) -> Log {
    var loop = ModelLoop(program, Switches(switches))
    loop.perform(program.main)
    loop.end()
    return loop.log
  }
}
