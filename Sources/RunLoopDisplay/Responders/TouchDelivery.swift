// SPDX-License-Identifier: Apache-2.0

/// What a view gets of a touch, as a value: after ``Action/began`` exactly one of ``Action/ended`` and
/// ``Action/cancelled``.
struct TouchDelivery: Hashable, Sendable {
  enum Phase: Hashable, Sendable, CaseIterable {
    /// The button was pressed, and the view has not been called.
    case pending
    /// The view follows the touch.
    case delivering
    /// The view was called for the last time.
    case over
  }

  enum Action: Hashable, Sendable {
    case nothing, began, moved, ended, cancelled
  }

  private(set) var phase = Phase.pending

  /// The press has come to the view.
  mutating func begin() -> Action {
    guard phase == .pending else { return .nothing }
    phase = .delivering
    return .began
  }

  /// The mouse has moved with the button held down.
  func move() -> Action { phase == .delivering ? .moved : .nothing }

  /// The button was released.
  mutating func end() -> Action { finish(.ended) }

  /// The touch is taken from the view.
  mutating func cancel() -> Action { finish(.cancelled) }

  private mutating func finish(_ action: Action) -> Action {
    defer { phase = .over }
    return phase == .delivering ? action : .nothing
  }
}
