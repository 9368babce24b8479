// SPDX-License-Identifier: Apache-2.0

/// The state machine of a tap: a number of presses and releases in one place, in quick succession.
struct TapState: Hashable, Sendable {
  enum Phase: Hashable, Sendable, CaseIterable {
    case idle
    /// The button is held down.
    case down
    /// The button was released, and must be pressed again.
    case between
  }

  enum Action: Hashable, Sendable {
    case nothing
    case recognize
    case fail
    /// Wait for another press.
    case wait
  }

  private(set) var phase = Phase.idle
  /// The number of presses and releases that make up the tap, at least 1.
  let required: Int
  /// The number of cells that the mouse may move.
  let slack: Int
  private(set) var count = 0
  private var start = Point.zero

  init(required: Int, slack: Int) {
    self.required = max(1, required)
    self.slack = max(0, slack)
  }

  mutating func press(at point: Point) -> Action {
    switch phase {
    case .idle:
      start = point
      phase = .down
      return .nothing
    case .between:
      guard point.distance(to: start) <= slack else { return .fail }
      phase = .down
      return .nothing
    case .down: return .nothing
    }
  }

  func move(to point: Point) -> Action {
    phase == .down && point.distance(to: start) > slack ? .fail : .nothing
  }

  mutating func release(at point: Point) -> Action {
    guard phase == .down else { return .nothing }
    guard point.distance(to: start) <= slack else { return .fail }
    count += 1
    guard count < required else { return .recognize }
    phase = .between
    return .wait
  }

  /// The time for another press has elapsed.
  func timeOut() -> Action { phase == .between ? .fail : .nothing }

  mutating func reset() { self = TapState(required: required, slack: slack) }
}

extension Point {
  /// Returns the number of columns or rows between two cells, whichever is larger.
  func distance(to other: Point) -> Int {
    let way = self - other
    return Int(clamping: max(way.x.magnitude, way.y.magnitude))
  }
}
