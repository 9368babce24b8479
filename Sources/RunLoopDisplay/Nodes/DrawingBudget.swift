// SPDX-License-Identifier: Apache-2.0

/// How long the main thread may draw in a turn, as a value.
struct DrawingBudget: Hashable, Sendable {
  /// Nanoseconds in a turn.
  static let limit: Int64 = 4_000_000
  /// After as many nanoseconds without a drawing there is a new budget, also in a turn that does not end.
  static let interval: Int64 = 16_000_000

  private var turn = -1
  private var begin: Int64 = 0
  private var spent: Int64 = 0

  /// Whether another drawing may begin.
  mutating func isOpen(turn: Int, now: Int64) -> Bool {
    if turn != self.turn || now - begin >= Self.interval {
      self.turn = turn
      begin = now
      spent = 0
    }
    return spent < Self.limit
  }

  /// A drawing has taken a time.
  mutating func spend(_ nanoseconds: Int64) {
    spent += nanoseconds
    // A drawing does not earn the time for the next.
    begin += nanoseconds
  }
}
