// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopSockets

@Suite("The state of a TLS connection")
struct TLSStateTests {
  private enum Event: CaseIterable {
    case shookHands, peerClosed, transportEnded, endedReading, fail, endWriting
  }

  private static func states() -> [(String, TLSState)] {
    func state(_ changes: (inout TLSState) -> Void) -> TLSState {
      var state = TLSState()
      changes(&state)
      return state
    }
    let open: (inout TLSState) -> Void = { $0.shookHands() }
    return [
      ("handshaking", TLSState()), ("open", state(open)),
      (
        "ended",
        state {
          open(&$0); $0.peerClosed()
        }
      ),
      (
        "closing",
        state {
          open(&$0); _ = $0.endWriting()
        }
      ),
      (
        "over",
        state {
          open(&$0); $0.peerClosed(); _ = $0.endWriting()
        }
      ),
      (
        "unread",
        state {
          open(&$0); $0.endedReading()
        }
      ),
      ("failed", state { $0.fail(.expired) }),
    ]
  }

  /// Returns a short description of a state.
  private static func word(_ state: TLSState) -> String {
    switch state.phase {
    case .handshaking: "handshaking"
    case .failed(let cause): "failed(\(cause.word))"
    case .open:
      switch (state.hasEnded, state.hasEndedWriting) {
      case (false, false): "open"
      case (true, false): "ended"
      case (false, true): "closing"
      case (true, true): "over"
      }
    }
  }

  private static func apply(_ event: Event, _ state: inout TLSState) -> String {
    switch event {
    // The caller must do this only once.
    case .shookHands: if state.phase == .handshaking { state.shookHands() }
    case .peerClosed: state.peerClosed()
    case .transportEnded: state.transportEnded()
    case .endedReading: state.endedReading()
    case .fail: state.fail(.truncated)
    case .endWriting: if state.endWriting() { return "notifies:\(word(state))" }
    }
    return word(state)
  }

  @Test("every TLS event has its effect in every state")
  func table() {
    let expected: [String: [String]] = [
      "handshaking": [
        "open", "failed(closedDuringHandshake)", "failed(closedDuringHandshake)", "handshaking", "failed(truncated)",
        "handshaking",
      ],
      "open": ["open", "ended", "failed(truncated)", "open", "failed(truncated)", "notifies:closing"],
      "unread": ["open", "ended", "ended", "open", "failed(truncated)", "notifies:closing"],
      "ended": ["ended", "ended", "ended", "ended", "failed(truncated)", "notifies:over"],
      "closing": ["closing", "over", "failed(truncated)", "closing", "failed(truncated)", "closing"],
      "over": ["over", "over", "over", "over", "failed(truncated)", "over"],
      "failed": Array(repeating: "failed(expired)", count: 6),
    ]
    for (name, state) in Self.states() {
      #expect(Self.word(state) == ["failed": "failed(expired)", "unread": "open"][name, default: name])
      let results = Event.allCases.map { event in
        var copy = state
        return Self.apply(event, &copy)
      }
      #expect(results == expected[name], "\(name)")
    }
  }

  @Test("bytes pass only in an open connection, and only on a side that has not ended")
  func passing() {
    for (name, state) in Self.states() {
      #expect(state.reads == ["open", "closing", "unread"].contains(name), "\(name)")
      #expect(state.writes == ["open", "ended", "unread"].contains(name), "\(name)")
    }
  }
}
