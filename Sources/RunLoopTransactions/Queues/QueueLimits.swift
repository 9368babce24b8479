// SPDX-License-Identifier: Apache-2.0

/// How many elements a queue consumes in one turn, as a value.
struct QueueLimits: Hashable, Sendable {
  let batch: Int
  /// Nanoseconds; nil: one batch.
  let budget: Int64?

  init(batch: Int, budget: Int64?) {
    self.batch = max(1, batch)
    self.budget = budget.flatMap { $0 > 0 ? $0 : nil }
  }

  /// Whether the turn goes on after so many elements and so many nanoseconds.
  ///
  /// The time is asked for after each batch only.
  func allowsMore(after count: Int, _ elapsed: () -> Int64) -> Bool {
    if count % batch != 0 || count == 0 { return true }
    guard let budget else { return false }
    return elapsed() < budget
  }
}
