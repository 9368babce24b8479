// SPDX-License-Identifier: Apache-2.0

/// The call path that most of many stacks share, from the run inward.
///
/// Stacks of a running thread are rarely identical. They are merged from the outside into a tree, and the path follows
/// the most frequent callee at each function.
package struct HeaviestPath: Sendable {
  /// A function on the path.
  package struct Step: Sendable, Hashable {
    /// The most frequent address in the function.
    package let address: UInt64
    /// The number of samples that contain it.
    package let count: Int
    /// Whether at least one sample proves its place on the stack.
    package let isProved: Bool
  }

  /// The functions, innermost first.
  package let steps: [Step]
  /// One of the samples that contain the whole path.
  package let sample: StackSample
  /// Whether the first address is a return address, because the samples have no callee in common.
  package let endsInCall: Bool

  /// Finds the path; fails without samples.
  ///
  /// - Complexity: O(*n*), where *n* is the total number of addresses.
  package init?(_ samples: [StackSample]) {
    // Stacks that do not reach the run cannot be merged with those that do.
    let complete = samples.filter(\.isComplete)
    var members = (complete.isEmpty ? samples : complete)[...]
    guard var best = members.first else { return nil }
    var steps: [Step] = []
    let least = HeaviestPath.least(of: members.count)
    for depth in 0... {
      let branches = Dictionary(grouping: members.filter { $0.functions.count > depth }) {
        $0.functions[$0.functions.count - 1 - depth]
      }
      // Among equals, the first.
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

  /// The minimum number of samples for a function: a fifth, to exclude chance.
  private static func least(of total: Int) -> Int { total < 5 ? 1 : max(2, total / 5) }

  private static func step(at depth: Int, of samples: [StackSample]) -> Step {
    var counts: [UInt64: Int] = [:]
    for sample in samples { counts[sample.addresses[sample.addresses.count - 1 - depth], default: 0] += 1 }
    let address = counts.max { ($0.value, $1.key) < ($1.value, $0.key) }?.key ?? 0
    let isProved = samples.contains { $0.addresses.count - 1 - depth < $0.proved }
    return Step(address: address, count: samples.count, isProved: isProved)
  }
}
