// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopTransactions

@Suite("The outcome of an asynchronous transaction, as a value", .timeLimit(.minutes(20)))
struct AsyncTransactionStateTests {
  private enum Event: CaseIterable {
    case commit, commitEmpty, finishPiece, cancel, cancelDelivered, drop, fail, complete
  }

  /// The states, named by the events that lead to them; one of two operations finishes while it is running.
  private enum Path: String, CaseIterable {
    case open, running, delivering, cancelled, cancelledOpen, dropped, complete, completeCancelled

    var state: AsyncTransactionState {
      var state = AsyncTransactionState()
      switch self {
      case .open: break
      case .running:
        _ = state.commit(pieces: 2)
        _ = state.finishPiece()
      case .delivering:
        _ = state.commit(pieces: 1)
        _ = state.finishPiece()
      case .cancelled:
        _ = state.commit(pieces: 2)
        _ = state.cancel(hasUndelivered: true)
      case .cancelledOpen: _ = state.cancel(hasUndelivered: true)
      case .dropped: _ = state.drop()
      case .complete:
        _ = state.commit(pieces: 0)
        _ = state.complete()
      case .completeCancelled:
        _ = state.commit(pieces: 1)
        _ = state.cancel(hasUndelivered: true)
        _ = state.complete()
      }
      return state
    }
  }

  private func outcome(of event: Event, after path: Path) -> String {
    var state = path.state
    let action: AsyncTransactionState.Action
    switch event {
    case .commit: action = state.commit(pieces: 3)
    case .commitEmpty: action = state.commit(pieces: 0)
    case .finishPiece:
      // A worker receives only as many operations as were committed.
      if state.unfinished == 0 { return "trap" }
      action = state.finishPiece()
    case .cancel: action = state.cancel(hasUndelivered: true)
    case .cancelDelivered: action = state.cancel(hasUndelivered: false)
    case .drop: action = state.drop()
    case .fail: action = state.fail(.loopHasEnded)
    case .complete:
      if state.phase == .open || state.phase == .running { return "trap" }
      return state.complete() ? "\(state.phase)" : "again"
    }
    let failure = state.failure.map { " \($0 == .cancelled ? "C" : $0 == .droppedWhileOpen ? "D" : "L")" } ?? ""
    return "\(state.phase)\(failure)" + (action == .nothing ? "" : " \(action)")
  }

  @Test("every event in every state")
  func table() {
    let expected: [Path: [String]] = [
      // commit, commitEmpty, finishPiece, cancel, cancelDelivered, drop, fail, complete
      .open: [
        "running start", "delivering deliver", "trap", "delivering C deliver", "delivering C deliver",
        "delivering D deliver", "delivering L deliver", "trap",
      ],
      .running: [
        "running reject", "running reject", "delivering deliver", "delivering C deliver", "delivering C deliver",
        "running", "delivering L deliver", "trap",
      ],
      .delivering: [
        "delivering reject", "delivering reject", "trap", "delivering C", "delivering", "delivering", "delivering L",
        "complete",
      ],
      .cancelled: [
        "delivering C reject", "delivering C reject", "delivering C", "delivering C", "delivering C", "delivering C",
        "delivering C", "complete",
      ],
      .cancelledOpen: [
        "delivering C reject", "delivering C reject", "trap", "delivering C", "delivering C", "delivering C",
        "delivering C", "complete",
      ],
      .dropped: [
        "delivering D reject", "delivering D reject", "trap", "delivering D", "delivering D", "delivering D",
        "delivering D", "complete",
      ],
      .complete: [
        "complete reject", "complete reject", "trap", "complete", "complete", "complete", "complete", "again",
      ],
      .completeCancelled: [
        "complete C reject", "complete C reject", "complete C", "complete C", "complete C", "complete C", "complete C",
        "again",
      ],
    ]
    for path in Path.allCases {
      #expect(Event.allCases.map { outcome(of: $0, after: path) } == expected[path], "\(path)")
    }
  }

  @Test("an open transaction accepts operations, and its reports and end follow from its state")
  func visible() {
    let expected: [Path: (Bool, AsyncTransaction.State, AsyncTransaction.Outcome?)] = [
      .open: (true, .open, nil), .running: (false, .committed, nil), .delivering: (false, .committed, nil),
      .cancelled: (false, .cancelled, nil), .cancelledOpen: (false, .cancelled, nil),
      .dropped: (false, .committed, nil), .complete: (false, .complete, .completed),
      .completeCancelled: (false, .complete, .cancelled),
    ]
    for path in Path.allCases {
      let state = path.state
      #expect(state.acceptsOperations == expected[path]?.0, "\(path)")
      #expect(state.visible == expected[path]?.1, "\(path)")
      #expect(state.outcome == expected[path]?.2, "\(path)")
    }
    var dropped = Path.dropped.state
    _ = dropped.complete()
    #expect(dropped.outcome == .failed(.droppedWhileOpen))
  }
}
