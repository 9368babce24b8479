// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopHTTP

/// Tests every pair of a phase and an event.
@Suite struct OperationStateTests {
  private static let failure = HTTP.Error(.connectionLost, "a failure")
  private static let late = HTTP.Error(.timedOut, "the time is over")
  private static let part = OperationState.Part(base: 0, received: 7, validator: Validator(text: "\"a\""), total: 10)

  /// The events, by their names in the table.
  private static let events: [(String, OperationState.Event)] = [
    ("start", .start), ("resolved", .resolved), ("connected", .connected), ("head", .head(part)), ("bytes", .bytes(3)),
    ("end", .end), ("closed", .closed), ("fail", .fail(failure)), ("expired", .expired(late)),
    ("retry", .retry(after: .seconds(1))),
    ("pause", .pause), ("resume", .resume), ("cancel", .cancel), ("hold", .hold), ("release", .release),
    ("stopped", .clientStopped),
  ]

  /// The shortest sequence of events that leads to each phase.
  private static let ways: [(String, [OperationState.Event])] = [
    ("ready", []), ("resolving", [.start]), ("connecting", [.start, .resolved]),
    ("sending", [.start, .resolved, .connected]), ("receiving", [.start, .resolved, .connected, .head(part)]),
    ("held", [.start, .resolved, .connected, .head(part), .hold]),
    ("paused", [.start, .resolved, .connected, .head(part), .pause]),
    ("finishing", [.start, .resolved, .connected, .head(part), .end]),
    ("finished", [.start, .resolved, .connected, .head(part), .end, .closed]),
  ]

  /// The effect of each event in each phase: the next phase and the actions, or "-" for none.
  ///
  /// The columns have the order of `events`.
  private static let table = """
    ready start=resolving:begin resolved=- connected=- head=- bytes=- end=- closed=- \
    fail=finished(connectionLost):drop,finish expired=finished(timedOut):drop,finish \
    retry=- pause=paused resume=- \
    cancel=finished(cancelled):drop,finish hold=ready! release=- stopped=finished(stopped):drop,finish
    resolving start=- resolved=connecting connected=- head=- bytes=- end=- closed=- \
    fail=finished(connectionLost):drop,finish expired=finished(timedOut):drop,finish \
    retry=resolving:drop,begin+1 pause=paused:drop resume=- \
    cancel=finished(cancelled):drop,finish hold=resolving! release=- stopped=finished(stopped):drop,finish
    connecting start=- resolved=- connected=sending head=receiving bytes=- end=- closed=- \
    fail=finished(connectionLost):drop,finish expired=finished(timedOut):drop,finish \
    retry=resolving:drop,begin+1 pause=paused:drop resume=- \
    cancel=finished(cancelled):drop,finish hold=connecting! release=- stopped=finished(stopped):drop,finish
    sending start=- resolved=- connected=- head=receiving bytes=- end=- closed=- \
    fail=finished(connectionLost):drop,finish expired=finished(timedOut):drop,finish \
    retry=resolving:drop,begin+1 pause=paused:drop resume=- \
    cancel=finished(cancelled):drop,finish hold=sending! release=- stopped=finished(stopped):drop,finish
    receiving start=- resolved=- connected=- head=- bytes=receiving+3 end=finishing:close closed=- \
    fail=finished(connectionLost):drop,finish expired=finished(timedOut):drop,finish \
    retry=resolving:drop,begin+1 pause=paused:drop resume=- \
    cancel=finished(cancelled):drop,finish hold=held!:hold release=- stopped=finished(stopped):drop,finish
    held start=- resolved=- connected=- head=- bytes=held!+3 end=finishing!:close closed=- \
    fail=finished(connectionLost)!:drop,finish expired=finished(timedOut)!:drop,finish \
    retry=resolving!:drop,begin+1 pause=paused!:drop resume=- \
    cancel=finished(cancelled)!:drop,finish hold=- release=receiving:release stopped=finished(stopped)!:drop,finish
    paused start=- resolved=- connected=- head=- bytes=- end=- closed=- fail=- \
    expired=finished(timedOut):drop,finish retry=- pause=- resume=resolving:begin \
    cancel=finished(cancelled):drop,finish hold=paused! release=- stopped=finished(stopped):drop,finish
    finishing start=- resolved=- connected=- head=- bytes=- end=- closed=finished(response):finish \
    fail=finished(connectionLost):drop,finish expired=finished(timedOut):drop,finish \
    retry=- pause=- resume=- cancel=finished(cancelled):drop,finish \
    hold=finishing! release=- stopped=finished(stopped):drop,finish
    finished start=- resolved=- connected=- head=- bytes=- end=- closed=- fail=- expired=- retry=- pause=- resume=- \
    cancel=- hold=- release=- stopped=-
    """

  @Test("every event has its effect in every phase")
  func pairs() {
    var lines: [String] = []
    for (name, way) in Self.ways {
      var cells: [String] = [name]
      for (event, value) in Self.events {
        var state = OperationState()
        for step in way { _ = state.apply(step) }
        let before = state
        let actions = state.apply(value)
        cells.append("\(event)=\(describe(before, state, actions))")
      }
      lines.append(cells.joined(separator: " "))
    }
    for (ours, expected) in zip(lines, Self.table.split(separator: "\n")) { #expect(ours == expected) }
    #expect(lines.count == Self.table.split(separator: "\n").count)
  }

  private func describe(_ before: OperationState, _ after: OperationState, _ actions: OperationState.Actions) -> String
  {
    guard before != after || !actions.isEmpty else { return "-" }
    let phase =
      switch after.phase {
      case .ready: "ready"
      case .resolving: "resolving"
      case .connecting: "connecting"
      case .sending: "sending"
      case .receiving: "receiving"
      case .held: "held"
      case .paused: "paused"
      case .finishing: "finishing"
      case .finished(let error): "finished(\(error?.code.name ?? "response"))"
      }
    let more = after.part.received - before.part.received
    let isNew = if case .receiving = after.phase, before.part == OperationState.Part() { true } else { false }
    let words = actions.map { action in
      switch action {
      case .begin(let delay): delay == .zero ? "begin" : "begin+\(delay.components.seconds)"
      case .drop: "drop"
      case .hold: "hold"
      case .release: "release"
      case .close: "close"
      case .finish: "finish"
      }
    }
    return phase + (after.isHeld ? "!" : "") + (more > 0 && !isNew ? "+\(more)" : "")
      + (words.isEmpty ? "" : ":" + words.joined(separator: ","))
  }

  @Test("a request that was held before its body arrives holds it after the headers")
  func heldEarly() {
    var state = OperationState()
    _ = state.apply(.hold)
    _ = state.apply(.start)
    _ = state.apply(.resolved)
    _ = state.apply(.connected)
    #expect(state.apply(.head(Self.part)) == OperationState.Actions(.hold))
    #expect(state.phase == .held(Self.part))
  }

  @Test("received bytes are kept through a pause, a resumption and a retry")
  func keeping() {
    var state = OperationState()
    for event in [OperationState.Event.start, .resolved, .connected, .head(Self.part), .bytes(2), .pause] {
      _ = state.apply(event)
    }
    #expect(state.part.received == 9)
    _ = state.apply(.resume)
    #expect(state.kept.received == 9)
    _ = state.apply(.resolved)
    _ = state.apply(.retry(after: .zero))
    #expect(state.kept.received == 9)
    #expect(state.kept.canGoOn)
  }

  @Test("a body is resumed only if its version and length are known and it is not encoded")
  func goingOn() {
    var part = Self.part
    #expect(part.canGoOn)
    part.isDecoded = true
    #expect(!part.canGoOn)
    part = Self.part
    part.total = nil
    #expect(!part.canGoOn)
    part = Self.part
    part.validator = nil
    #expect(!part.canGoOn)
    part = Self.part
    part.received = 11
    #expect(!part.canGoOn)
    #expect(!OperationState.Part().canGoOn)
  }
}
