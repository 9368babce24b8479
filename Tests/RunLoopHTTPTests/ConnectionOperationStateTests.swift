// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopHTTP

/// The life cycle of an operation on the network thread, as a value.
@Suite struct ConnectionOperationStateTests {
  private typealias Event = ConnectionOperationState.Event

  /// The events that lead to each state, and each event's effect there: the next phase, and what is sent to the loop.
  private static let table: [(path: [Event], row: [Event: String])] = [
    ([], [.start: "executing start", .pause: "paused", .resume: "ready", .cancel: "ready", .end: "finished"]),
    (
      [.start],
      [
        .start: "executing", .pause: "paused pause", .resume: "executing", .cancel: "executing cancel",
        .end: "finished",
      ]
    ),
    (
      [.start, .pause],
      [.start: "paused", .pause: "paused", .resume: "executing resume", .cancel: "paused cancel", .end: "finished"]
    ),
    // An operation paused before its start is started by the resumption.
    ([.pause], [.start: "paused", .pause: "paused", .resume: "executing start", .cancel: "ready", .end: "finished"]),
    // An operation cancelled before its start ends when it is started, and only once.
    ([.cancel], [.start: "ready cancel", .pause: "ready", .resume: "ready", .cancel: "ready", .end: "finished"]),
    ([.cancel, .start], [.start: "ready", .pause: "ready", .resume: "ready", .cancel: "ready", .end: "finished"]),
    // Also if it was paused, because a queue does not start a paused operation.
    (
      [.pause, .cancel],
      [.start: "ready cancel", .pause: "ready", .resume: "ready", .cancel: "ready", .end: "finished"]
    ),
    (
      [.start, .cancel],
      [.start: "executing", .pause: "executing", .resume: "executing", .cancel: "executing", .end: "finished"]
    ),
    (
      [.start, .end],
      [.start: "finished", .pause: "finished", .resume: "finished", .cancel: "finished", .end: "finished"]
    ),
  ]

  @Test("every pair of state and event has the effect in the table", arguments: table.indices)
  func pairs(_ index: Int) {
    let (path, row) = Self.table[index]
    #expect(row.count == Event.allCases.count)
    for event in Event.allCases {
      var state = ConnectionOperationState()
      for event in path { _ = state.apply(event) }
      let hop = state.apply(event)
      let text = "\(state.phase)" + (hop.map { " \($0)" } ?? "")
      #expect(text == row[event], "\(path) \(event)")
    }
  }

  @Test("whatever happens, the connection is started at most once, and its end is delivered at most once")
  func random() {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<2000 {
      var state = ConnectionOperationState()
      var (events, hops): ([Event], [ConnectionOperationState.Hop]) = ([], [])
      for _ in 0..<12 {
        let event = [Event.start, .pause, .resume, .cancel].randomElement(using: &generator) ?? .start
        events.append(event)
        if let hop = state.apply(event) { hops.append(hop) }
      }
      #expect(hops.count { $0 == .start } <= 1, "\(events)")
      #expect(hops.count { $0 == .cancel } <= 1, "\(events)")
      // Nothing else is sent after a cancellation.
      if let cancelled = hops.firstIndex(of: .cancel) { #expect(cancelled == hops.count - 1, "\(events)") }
      #expect(state.phase != .finished)
    }
  }
}
