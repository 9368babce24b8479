// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopCore
@testable import RunLoopTransactions

@Suite("When a pipeline commits, as a value", .timeLimit(.minutes(20)))
struct CommitStateTests {
  private enum Event: CaseIterable {
    case mark, arrive, fire, flush, close, finish, end
  }

  /// A pipeline in a phase, with an interval of 16 and the first mark at 100.
  private func state(in phase: CommitState.Phase) -> CommitState {
    var state = CommitState(interval: 16)
    if phase == .resting { return state }
    if phase == .ended {
      _ = state.end()
      return state
    }
    _ = state.mark { Tick(nanoseconds: 100) }
    if phase == .marked { return state }
    if phase == .due {
      _ = state.fire(at: Tick(nanoseconds: 116))
      return state
    }
    _ = state.arrive { Tick(nanoseconds: 100) }
    if phase == .collecting { return state }
    state.close()
    if phase == .remarked { _ = state.mark { Tick(nanoseconds: 100) } }
    return state
  }

  /// Applies an event at 120, and describes the outcome.
  private func outcome(of event: Event, in phase: CommitState.Phase) -> String {
    var state = state(in: phase)
    #expect(state.phase == phase)
    let now = Tick(nanoseconds: 120)
    let action: CommitState.Action
    switch event {
    case .mark: action = state.mark { now }
    case .arrive: action = state.arrive { now }
    case .fire: action = state.fire(at: now)
    case .flush: action = state.flush { now }
    case .close:
      state.close()
      action = .nothing
    case .finish:
      // The pipeline finishes what it has begun.
      if [.resting, .marked, .due].contains(phase) { return "trap" }
      action = state.finish { now }
    case .end: action = state.end()
    }
    switch action {
    case .nothing: return "\(state.phase)"
    case .arm(let date, let wakes): return "\(state.phase) arm \(date.nanoseconds)\(wakes ? " wake" : "")"
    case .disarm: return "\(state.phase) disarm"
    case .commit: return "\(state.phase) commit"
    }
  }

  @Test("every event of a commit pipeline in every phase has its effect")
  func table() {
    let expected: [CommitState.Phase: [String]] = [
      // mark, arrive, fire, flush, close, finish, end
      .resting: ["marked arm 136 wake", "resting", "resting", "resting", "resting", "trap", "ended disarm"],
      .marked: ["marked", "collecting commit", "due arm 120", "collecting commit", "marked", "trap", "ended disarm"],
      .due: ["due", "collecting commit", "collecting commit", "collecting commit", "due", "trap", "ended disarm"],
      .collecting: [
        "collecting", "collecting", "collecting", "collecting", "committing", "resting disarm", "ended disarm",
      ],
      .committing: [
        "remarked", "committing", "committing", "committing", "committing", "resting disarm", "ended disarm",
      ],
      .remarked: [
        "remarked", "remarked", "remarked", "remarked", "remarked", "marked arm 136 wake", "ended disarm",
      ],
      .ended: ["ended", "ended", "ended", "ended", "ended", "ended", "ended"],
    ]
    for phase in CommitState.Phase.allCases {
      #expect(Event.allCases.map { outcome(of: $0, in: phase) } == expected[phase], "\(phase)")
    }
  }

  @Test("after a commit that finishes within its interval, the next one waits for the rest of it")
  func withinInterval() {
    var state = state(in: .remarked)
    #expect(state.finish { Tick(nanoseconds: 105) } == .arm(Tick(nanoseconds: 116), wakes: false))
    #expect(state.arrive { Tick(nanoseconds: 115) } == .nothing)
    #expect(state.arrive { Tick(nanoseconds: 116) } == .commit)
  }

  @Test("a mark within the previous commit's interval waits for its rest, and a later one does not")
  func markWithinInterval() {
    var early = state(in: .committing)
    _ = early.finish { Tick(nanoseconds: 101) }
    #expect(early.mark { Tick(nanoseconds: 110) } == .arm(Tick(nanoseconds: 116), wakes: false))
    var late = state(in: .committing)
    _ = late.finish { Tick(nanoseconds: 101) }
    #expect(late.mark { Tick(nanoseconds: 116) } == .arm(Tick(nanoseconds: 132), wakes: true))
  }

  @Test("a flush does not wait for the interval, and starts a new one")
  func flush() {
    var state = state(in: .committing)
    _ = state.finish { Tick(nanoseconds: 101) }
    _ = state.mark { Tick(nanoseconds: 102) }
    #expect(state.flush { Tick(nanoseconds: 103) } == .commit)
    #expect(state.earliest == Tick(nanoseconds: 119))
  }

  @Test(
    "an interval of zero or less is no limit, and an infinite one prevents further commits")
  func intervals() {
    for interval in [0, -1, Int64.min] {
      var state = CommitState(interval: interval)
      for _ in 0..<3 {
        _ = state.mark { Tick(nanoseconds: 5) }
        #expect(state.arrive { Tick(nanoseconds: 5) } == .commit)
        state.close()
        #expect(state.finish { Tick(nanoseconds: 5) } == .disarm)
      }
    }
    var state = CommitState(interval: .max)
    _ = state.mark { Tick(nanoseconds: 5) }
    #expect(state.arrive { Tick(nanoseconds: 5) } == .commit)
    #expect(state.earliest == .never)
  }

  @Test("marks count towards the commit that covers them")
  func marks() {
    var state = CommitState(interval: 0)
    for _ in 0..<3 { _ = state.mark { Tick(nanoseconds: 0) } }
    _ = state.arrive { Tick(nanoseconds: 0) }
    _ = state.mark { Tick(nanoseconds: 0) }
    state.close()
    for _ in 0..<2 { _ = state.mark { Tick(nanoseconds: 0) } }
    #expect(state.marks == 4)
    _ = state.finish { Tick(nanoseconds: 0) }
    #expect(state.marks == 2)
  }
}
