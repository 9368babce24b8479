// SPDX-License-Identifier: Apache-2.0

/// The way through many stacks that most of them share, from the run to where the thread stood.
///
/// Stacks of a thread that runs are hardly ever the same. So they are laid over each other from the outside, as the
/// branches of a tree, and the way leads from each function to the callee that was seen most often there.
package struct HeaviestPath: Sendable {
  /// A function on the way.
  package struct Step: Sendable, Hashable {
    /// The address in it that was seen most often.
    package let address: UInt64
    /// In how many of the samples it was.
    package let count: Int
    /// Whether its place on the stack is proved in one of them.
    package let isProved: Bool
  }

  /// The functions, the innermost first.
  package let steps: [Step]
  /// One of the samples that have all of them.
  package let sample: StackSample
  /// Whether the first address is where a call returns to: the samples have no callee in common.
  package let endsInCall: Bool

  /// Nil without samples.
  ///
  /// - Complexity: O(*n*), where *n* is the number of all addresses.
  package init?(_ samples: [StackSample]) {
    // One that does not lead to the run cannot be laid over those that do.
    let complete = samples.filter(\.isComplete)
    var members = (complete.isEmpty ? samples : complete)[...]
    guard var best = members.first else { return nil }
    var steps: [Step] = []
    let least = HeaviestPath.least(of: members.count)
    for depth in 0... {
      let branches = Dictionary(grouping: members.filter { $0.functions.count > depth }) {
        $0.functions[$0.functions.count - 1 - depth]
      }
      // Of equals the first.
      guard let first = branches.values.map(\.count).max(), first >= least,
        let chosen = members.lazy.compactMap({ sample -> [StackSample]? in
          guard sample.functions.count > depth else { return nil }
          let branch = branches[sample.functions[sample.functions.count - 1 - depth]]
          return branch?.count == first ? branch : nil
        }).first
      else { break }
      members = chosen[...]
      best = chosen[0]
      steps.append(HeaviestPath.step(at: depth, of: chosen))
    }
    self.steps = steps.reversed()
    sample = best
    endsInCall = steps.count < best.addresses.count
  }

  /// In how many samples a function must be, so that it is no chance: in a fifth.
  private static func least(of total: Int) -> Int { total < 5 ? 1 : max(2, total / 5) }

  private static func step(at depth: Int, of samples: [StackSample]) -> Step {
    var counts: [UInt64: Int] = [:]
    for sample in samples { counts[sample.addresses[sample.addresses.count - 1 - depth], default: 0] += 1 }
    let address = counts.max { ($0.value, $1.key) < ($1.value, $0.key) }?.key ?? 0
    let isProved = samples.contains { $0.addresses.count - 1 - depth < $0.proved }
    return Step(address: address, count: samples.count, isProved: isProved)
  }
}
