// SPDX-License-Identifier: Apache-2.0

/// The state machine of a touch's delivery to a view.
///
/// After ``Action/began``, exactly one of ``Action/ended`` and ``Action/cancelled`` follows.
struct TouchDelivery: Hashable, Sendable {
  enum Phase: Hashable, Sendable, CaseIterable {
    /// The button was pressed, and the view has not been called yet.
    case pending
    /// The view receives the touch.
    case delivering
    /// The view received the last call.
    case over
  }

  enum Action: Hashable, Sendable {
    case nothing, began, moved, ended, cancelled
  }

  private(set) var phase = Phase.pending

  /// The press is delivered to the view.
  mutating func begin() -> Action {
    guard phase == .pending else { return .nothing }
    phase = .delivering
    return .began
  }

  /// The mouse moved while the button was held down.
  func move() -> Action { phase == .delivering ? .moved : .nothing }

  /// The button was released.
  mutating func end() -> Action { finish(.ended) }

  mutating func cancel() -> Action { finish(.cancelled) }

  private mutating func finish(_ action: Action) -> Action {
    defer { phase = .over }
    return phase == .delivering ? action : .nothing
  }
}
