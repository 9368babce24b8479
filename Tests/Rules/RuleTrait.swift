// SPDX-License-Identifier: Apache-2.0

package import Testing

/// The rules that a test or the tests of a suite demonstrate.
package struct RuleTrait: TestTrait, SuiteTrait {
  fileprivate var rules: [RuleID]

  /// The names of the rules, included in the report of a failing test.
  package var comments: [Comment] { [Comment(rawValue: rules.map(\.rawValue).joined(separator: ", "))] }
}

extension Trait where Self == RuleTrait {
  /// Declares the rules that a test demonstrates: `.rule(.r28a, .m3)`.
  package static func rule(_ rules: RuleID...) -> Self { RuleTrait(rules: rules) }
}
