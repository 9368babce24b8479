// SPDX-License-Identifier: Apache-2.0

/// How far a recogniser is, as a value: each event is a function that changes it and says what is to be done.
struct GestureState: Hashable, Sendable {
  typealias State = GestureRecognizer.State

  enum Phase: Hashable, Sendable {
    case plain(State)
    /// It has recognised its gesture, and waits for others to fail: what it will report, and whether the gesture has
    /// ended.
    case held(State, hasEnded: Bool)
  }

  enum Action: Hashable, Sendable {
    case nothing
    /// The state is another, and is reported.
    case report(State)
    /// Both are reported, in this order.
    case reportBoth(State, State)
    /// The gesture was recognised; it is reported when others have failed.
    case hold
  }

  private(set) var phase = Phase.plain(.possible)

  /// The state as its owner sees it.
  var state: State {
    switch phase {
    case .plain(let state): state
    case .held: .possible
    }
  }

  var isHeld: Bool {
    if case .held = phase { true } else { false }
  }

  /// Whether the gesture was recognised in the touch that is under way, or has just ended.
  var hasRecognized: Bool {
    switch state {
    case .began, .changed, .ended, .recognized: true
    case .possible, .cancelled, .failed: false
    }
  }

  /// Whether the gesture was recognised and has not ended.
  var isRecognizing: Bool { state == .began || state == .changed }

  /// The recogniser asks for a state; one that cannot follow is ignored.
  ///
  /// - Parameter waits: Whether others have to fail first.
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

  /// Those that had to fail have failed.
  mutating func release() -> Action {
    guard case .held(let first, let hasEnded) = phase else { return .nothing }
    guard first == .began, hasEnded else { return change(to: first) }
    phase = .plain(.ended)
    return .reportBoth(.began, .ended)
  }

  /// The touch has ended: from now on another gesture is possible.
  mutating func reset() { phase = .plain(.possible) }

  private mutating func change(to state: State) -> Action {
    phase = .plain(state)
    return .report(state)
  }
}
