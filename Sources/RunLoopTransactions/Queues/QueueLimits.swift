// SPDX-License-Identifier: Apache-2.0

/// The limit on how many elements a queue consumes in one turn.
struct QueueLimits: Hashable, Sendable {
  let batch: Int
  /// The time budget in nanoseconds, or nil if a turn consumes a single batch.
  let budget: Int64?

  init(batch: Int, budget: Int64?) {
    self.batch = max(1, batch)
    self.budget = budget.flatMap { $0 > 0 ? $0 : nil }
  }

  /// Returns whether the turn consumes another element after `count` elements.
  ///
  /// `elapsed` returns nanoseconds, and is called only at the end of a batch.
  func allowsMore(after count: Int, _ elapsed: () -> Int64) -> Bool {
    if count % batch != 0 || count == 0 { return true }
    guard let budget else { return false }
    return elapsed() < budget
  }
}
