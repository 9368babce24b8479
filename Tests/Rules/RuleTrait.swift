// SPDX-License-Identifier: Apache-2.0

package import Testing

/// Names the rules that a test or the tests of a suite show.
package struct RuleTrait: TestTrait, SuiteTrait {
  fileprivate var rules: [RuleID]

  /// The names of the rules, which a failing test is reported with.
  package var comments: [Comment] { [Comment(rawValue: rules.map(\.rawValue).joined(separator: ", "))] }
}

extension Trait where Self == RuleTrait {
  /// Names the rules that a test shows: `.rule(.r28a, .m3)`.
  package static func rule(_ rules: RuleID...) -> Self { RuleTrait(rules: rules) }
}
