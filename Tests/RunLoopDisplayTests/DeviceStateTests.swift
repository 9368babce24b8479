// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopDisplay

@Suite("The states of a terminal, its output and the focus, event by event")
struct DeviceStateTests {
  private static let events: [(name: String, apply: @Sendable (inout TerminalState) -> TerminalState.Action)] = [
    ("close", { $0.close() }), ("suspend", { $0.suspend() }), ("resume", { $0.resume() }), ("hangUp", { $0.hangUp() }),
  ]

  private static func terminal(_ phase: TerminalState.Phase) -> TerminalState {
    var state = TerminalState()
    if phase != .closed { state.open() }
    if phase == .suspended { _ = state.suspend() }
    if phase == .hungUp { _ = state.hangUp() }
    #expect(state.phase == phase)
    return state
  }

  @Test("a terminal in each phase handles each event")
  func terminals() {
    let rows = TerminalState.Phase.allCases.flatMap { phase in
      Self.events.map { name, apply in
        var state = Self.terminal(phase)
        let action = apply(&state)
        return "\(phase) \(name): \(action), \(state.phase)"
      }
    }
    #expect(
      rows == [
        "closed close: nothing, closed", "closed suspend: nothing, closed", "closed resume: nothing, closed",
        "closed hangUp: nothing, closed",
        "open close: restoreAndRelease, closed", "open suspend: restoreAndStop, suspended", "open resume: take, open",
        "open hangUp: releaseAndReport, hungUp",
        "suspended close: release, closed", "suspended suspend: nothing, suspended", "suspended resume: take, open",
        "suspended hangUp: releaseAndReport, hungUp",
        "hungUp close: release, closed", "hungUp suspend: nothing, hungUp", "hungUp resume: nothing, hungUp",
        "hungUp hangUp: nothing, hungUp",
      ])
    var again = Self.terminal(.hungUp)
    _ = again.close()
    again.open()
    #expect(again.phase == .open)
  }

  @Test("output continues, waits for room, finishes or hangs up, and a reply follows unwritten output")
  func output() {
    var output = OutputState()
    #expect(output.isIdle && output.next.isEmpty)
    output.append { bytes in (0..<10).forEach { bytes.append(UInt8($0)) } }
    #expect(!output.isIdle && output.next == 0..<10)
    #expect(output.note(4, wouldBlock: -11) == .write && output.next == 4..<10)
    #expect(output.note(-11, wouldBlock: -11) == .wait && output.note(0, wouldBlock: -11) == .wait)
    #expect(output.note(-5, wouldBlock: -11) == .hangUp && output.next == 4..<10)
    output.append { $0.append(99) }
    #expect(output.next == 0..<7 && Array(output.bytes) == [4, 5, 6, 7, 8, 9, 99])
    #expect(output.note(7, wouldBlock: -11) == .finish && output.isIdle)
    // No more is written than was asked for.
    output.append { $0.append(1) }
    #expect(output.next == 0..<1 && output.note(9, wouldBlock: -11) == .finish && output.next == 1..<1)
    output.append { $0.append(contentsOf: [1, 2]) }
    output.discard()
    #expect(output.isIdle && output.bytes.isEmpty)
  }

  @Test("endless output keeps the memory of one frame")
  func outputMemory() {
    var output = OutputState()
    for _ in 0..<1000 {
      output.append { $0.append(contentsOf: repeatElement(0, count: 1000)) }
      while !output.isIdle { _ = output.note(100, wouldBlock: -11) }
    }
    #expect(output.bytes.capacity < 4000)
  }

  @Test("the terminal's focus is taken, requested, left and lost")
  func focus() {
    let objects = [Token(), Token()]
    let (first, second) = (ObjectIdentifier(objects[0]), ObjectIdentifier(objects[1]))
    var focus = FocusState()
    #expect(focus.resign(first, isAble: false) == .nothing)
    #expect(focus.request(first, isAble: false) == .reject && focus.holder == nil)
    #expect(focus.request(first, isAble: true) == .take && focus.holder == first)
    #expect(focus.request(first, isAble: true) == .nothing && focus.request(second, isAble: false) == .reject)
    #expect(focus.request(second, isAble: true) == .ask && focus.holder == first)
    #expect(focus.resign(second, isAble: true) == .nothing && focus.resign(first, isAble: false) == .reject)
    #expect(focus.holder == first && focus.resign(first, isAble: true) == .release && focus.holder == nil)
    #expect(focus.request(second, isAble: true) == .take)
    #expect(focus.resign(second, isAble: true) == .release && focus == FocusState())
  }

  @Test("a terminal that keeps revoking granted modes is sent nothing for it")
  func answers() {
    var session = TerminalSession(size: Size(width: 9, height: 1), capabilities: TerminalCapabilities())
    var output: ContiguousArray<UInt8> = []
    session.enter(asks: true, into: &output)
    output = []
    var events: [InputEvent] = []
    for _ in 0..<100 {
      Array("\u{1B}[?2027;0$y\u{1B}[?2027;2$y\u{1B}[?0u".utf8).withUnsafeBytes {
        session.receive($0, events: &events, output: &output)
      }
    }
    #expect(String(decoding: output, as: UTF8.self) == "\u{1B}[?2027h\u{1B}[>5u\u{1B}[?u\u{1B}[c" && events.isEmpty)
  }

  @Test("a title is set again when the terminal is taken again, and removed whenever it is restored")
  func title() {
    var session = TerminalSession(size: Size(width: 9, height: 1), capabilities: TerminalCapabilities())
    let (save, title, restore) = ("\u{1B}[22;2t", "\u{1B}]2;title\u{1B}\\", "\u{1B}[23;2t")
    func written(_ body: (inout TerminalSession, inout ContiguousArray<UInt8>) -> Void) -> [String] {
      var output: ContiguousArray<UInt8> = []
      body(&session, &output)
      let text = String(decoding: output, as: UTF8.self)
      return [save, title, restore].filter { text.contains($0) }
    }
    let (set, removed) = ([save, title], [restore])
    #expect(written { $0.enter(asks: true, into: &$1) } == [])
    #expect(written { $0.setTitle("title", into: &$1) } == set)
    #expect(written { $0.setTitle("title", into: &$1) } == [title])
    #expect(written { $0.leave(into: &$1) } == removed)
    #expect(written { $0.enter(asks: false, into: &$1) } == set)
    #expect(written { $0.leave(into: &$1) } == removed)
    // Opened again after it was closed.
    #expect(written { $0.enter(asks: true, into: &$1) } == [])
    #expect(written { $0.leave(into: &$1) } == [])
    #expect(written { $0.setTitle("title", into: &$1) } == set)
  }

  @Test("output that was cut off when the terminal was restored does not continue when it is taken again")
  func cutOff() {
    for beginning in ["\u{1B}[200~pasted", "\u{1B}]0;title", "\u{1B}["] {
      var session = TerminalSession(size: Size(width: 9, height: 1), capabilities: TerminalCapabilities())
      var output: ContiguousArray<UInt8> = []
      var events: [InputEvent] = []
      Array(beginning.utf8).withUnsafeBytes { session.receive($0, events: &events, output: &output) }
      session.enter(asks: false, into: &output)
      Array("x".utf8).withUnsafeBytes { session.receive($0, events: &events, output: &output) }
      #expect(events == [.key(KeyEvent(.character("x")))], "\(beginning.debugDescription)")
    }
  }

  private final class Token {}
}
