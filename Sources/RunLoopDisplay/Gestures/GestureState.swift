// SPDX-License-Identifier: Apache-2.0

/// The state machine of a gesture recogniser, whose methods return the action to perform.
struct GestureState: Hashable, Sendable {
  typealias State = GestureRecognizer.State

  enum Phase: Hashable, Sendable {
    case plain(State)
    /// The gesture was recognised and waits for others to fail: the state to report, and whether the gesture has ended.
    case held(State, hasEnded: Bool)
  }

  enum Action: Hashable, Sendable {
    case nothing
    /// The state has changed, and must be reported.
    case report(State)
    /// Both states must be reported, in this order.
    case reportBoth(State, State)
    /// The gesture was recognised, and must be reported when others have failed.
    case hold
  }

  private(set) var phase = Phase.plain(.possible)

  /// The state as users see it.
  var state: State {
    switch phase {
    case .plain(let state): state
    case .held: .possible
    }
  }

  var isHeld: Bool {
    if case .held = phase { true } else { false }
  }

  /// Whether the gesture was recognised in the current touch, or in one that has just ended.
  var hasRecognized: Bool {
    switch state {
    case .began, .changed, .ended, .recognized: true
    case .possible, .cancelled, .failed: false
    }
  }

  /// Whether the gesture was recognised and has not ended.
  var isRecognizing: Bool { state == .began || state == .changed }

  /// The recogniser requests a state, which is ignored if it cannot follow the current one.
  ///
  /// - Parameter waits: Whether other recognisers must fail first.
  mutating func request(_ next: State, waits: Bool) -> Action {
    switch (phase, next) {
    case (.plain(.possible), .began), (.plain(.possible), .recognized):
      guard !waits else {
        phase = .held(next, hasEnded: next == .recognized)
        return .hold
      }
      return change(to: next)
    case (.plain(.possible), .failed): return change(to: next)
    case (.plain(.began), .changed), (.plain(.changed), .changed), (.plain(.began), .ended), (.plain(.changed), .ended),
      (.plain(.began), .cancelled), (.plain(.changed), .cancelled):
      return change(to: next)
    case (.held(let first, false), .ended):
      phase = .held(first, hasEnded: true)
      return .nothing
    case (.held, .cancelled), (.held, .failed): return change(to: .failed)
    default: return .nothing
    }
  }

  /// The other recognisers have failed.
  mutating func release() -> Action {
    guard case .held(let first, let hasEnded) = phase else { return .nothing }
    guard first == .began, hasEnded else { return change(to: first) }
    phase = .plain(.ended)
    return .reportBoth(.began, .ended)
  }

  /// The touch has ended, and another gesture can be recognised.
  mutating func reset() { phase = .plain(.possible) }

  private mutating func change(to state: State) -> Action {
    phase = .plain(state)
    return .report(state)
  }
}
