// SPDX-License-Identifier: Apache-2.0

/// The time that the main thread may spend on drawing in a turn.
struct DrawingBudget: Hashable, Sendable {
  /// The budget of a turn, in nanoseconds.
  static let limit: Int64 = 4_000_000
  /// The time without drawing, in nanoseconds, after which the budget is renewed even within a turn.
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

  /// Records the time taken by a drawing.
  mutating func spend(_ nanoseconds: Int64) {
    spent += nanoseconds
    // The time spent on drawing does not count towards the renewal.
    begin += nanoseconds
  }
}
