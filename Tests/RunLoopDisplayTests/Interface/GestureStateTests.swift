// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopDisplay

@Suite("The states of gestures, event by event")
struct GestureStateTests {
  typealias State = GestureRecognizer.State

  /// A state machine in each of its phases.
  private static let machines: [(name: String, make: @Sendable () -> GestureState)] = [
    ("possible", { GestureState() }),
    ("began", { request([.began]) }), ("changed", { request([.began, .changed]) }),
    ("ended", { request([.began, .ended]) }), ("cancelled", { request([.began, .cancelled]) }),
    ("failed", { request([.failed]) }), ("recognized", { request([.recognized]) }),
    ("held", { request([.began], waits: true) }), ("held tap", { request([.recognized], waits: true) }),
  ]

  private static func request(_ states: [State], waits: Bool = false) -> GestureState {
    var machine = GestureState()
    for state in states { _ = machine.request(state, waits: waits) }
    return machine
  }

  @Test("each gesture phase accepts its possible next states and ignores the others")
  func table() {
    let rows = Self.machines.map { name, make in
      let answers = State.allCases.map { state -> String in
        var machine = make()
        switch machine.request(state, waits: false) {
        case .nothing: return "-"
        case .report(let reported): return reported == state ? "+" : "\(reported)"
        case .reportBoth: return "both"
        case .hold: return "hold"
        }
      }
      return "\(name): \(answers.joined(separator: " "))"
    }
    // possible began changed ended cancelled failed recognized
    #expect(
      rows == [
        "possible: - + - - - + +", "began: - - + + + - -", "changed: - - + + + - -", "ended: - - - - - - -",
        "cancelled: - - - - - - -", "failed: - - - - - - -", "recognized: - - - - - - -", "held: - - - - failed + -",
        "held tap: - - - - failed + -",
      ])
  }

  @Test("a held-back gesture reports its current state when released, and its end if it has already ended")
  func release() {
    var machine = GestureState()
    #expect(machine.release() == .nothing)
    #expect(machine.request(.began, waits: true) == .hold && machine.state == .possible && machine.isHeld)
    #expect(machine.release() == .report(.began) && machine.state == .began && machine.isRecognizing)
    machine.reset()
    _ = machine.request(.began, waits: true)
    #expect(machine.request(.ended, waits: false) == .nothing)
    #expect(machine.release() == .reportBoth(.began, .ended) && machine.state == .ended)
    machine.reset()
    #expect(machine.request(.recognized, waits: true) == .hold && machine.release() == .report(.recognized))
  }

  @Test("a tap in each phase handles each event")
  func tap() {
    let idle = TapState(required: 2, slack: 1)
    var down = idle
    #expect(down.press(at: .zero) == .nothing)
    var between = down
    #expect(between.release(at: Point(x: 1, y: -1)) == .wait && between.phase == .between)
    for (state, expected) in [
      (idle, "nothing nothing nothing"), (down, "fail wait nothing"), (between, "nothing nothing fail"),
    ] {
      var released = state
      let answers = [state.move(to: Point(x: 2, y: 0)), released.release(at: .zero), state.timeOut()]
      #expect(answers.map { "\($0)" }.joined(separator: " ") == expected)
    }
    var far = between
    #expect(far.press(at: Point(x: 3, y: 0)) == .fail)
    #expect(between.press(at: .zero) == .nothing && between.release(at: .zero) == .recognize)
    between.reset()
    #expect(between == idle)
    var moved = down
    #expect(moved.release(at: Point(x: 0, y: 2)) == .fail)
  }

  @Test("a view gets one beginning and one end of a touch, whatever the order of events")
  func delivery() {
    enum Event: CaseIterable { case begin, move, end, cancel }
    // All sequences of six events.
    for number in 0..<4096 {
      var delivery = TouchDelivery()
      var actions: [TouchDelivery.Action] = []
      for place in 0..<6 {
        switch Event.allCases[number >> (2 * place) & 3] {
        case .begin: actions.append(delivery.begin())
        case .move: actions.append(delivery.move())
        case .end: actions.append(delivery.end())
        case .cancel: actions.append(delivery.cancel())
        }
      }
      actions.removeAll { $0 == .nothing }
      let ends = actions.count { $0 == .ended || $0 == .cancelled }
      let begins = actions.count { $0 == .began }
      #expect(begins <= 1 && ends == (delivery.phase == .over ? begins : 0))
      #expect(begins == 0 || actions.first == .began)
      #expect(ends == 0 || actions.last == .ended || actions.last == .cancelled)
    }
  }
}
