// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopDisplayTesting
import RunLoopTesting
import TestSupport
import Testing

@testable import RunLoopDisplay

@MainActor
private final class RecordingWindow: Window {
  var events: [String] = []

  override func sendEvent(_ event: InputEvent) {
    events.append(describe(.event(event)))
    super.sendEvent(event)
  }
}

@Suite("Input that is held back", .timeLimit(.minutes(20)))
@MainActor
struct HeldInputTests {
  /// Sends texts, in which `^` stands for ESC, at times in milliseconds.
  ///
  /// Returns the events that the window received, and the text of its field.
  private func typed(
    _ steps: [(Int, String)], _ features: HeadlessTerminal.Features = .none
  ) throws -> (events: String, text: String) {
    try VirtualTime.asMain { time in
      let terminal = HeadlessTerminal(size: Size(width: 40, height: 3), features: features)
      let window = RecordingWindow()
      let field = TextField(frame: Rect(x: 0, y: 0, width: 40, height: 1))
      window.addSubview(field)
      field.becomeFirstResponder()
      let application = Application(device: terminal, window: window)
      try application.start()
      try time.advance(by: .milliseconds(40))
      var now = 0
      for (date, text) in steps {
        try time.advance(by: .milliseconds(date - now))
        now = date
        terminal.send(text.replacing("^", with: "\u{1B}").utf8)
      }
      try time.advance(by: .milliseconds(1000))
      application.finish()
      return (window.events.joined(separator: " "), field.text)
    }
  }

  /// Complete sequences that a terminal sends.
  private nonisolated static let sequences = [
    "^[200~abc^[201~", "^[<0;3;4M", "^[<35;3;4m", "^[M !!", "^[32;5;6M", "^[1;5A", "^[3;5~", "^[97;5u", "^[1089::99;5u",
    "^[27;5;97~", "^OP", "^O5A", "^[[A", "^[I", "^[?62;22c", "^[?2026;2$y", "^[?1u", "^[12;40R", "^P>|xterm(380)^\\",
    "^]11;rgb:0/0/0\u{7}", "^]52;c;QUJD^\\", "^_Gi=1;OK^\\", "^^[A", "^a", "^]", "^^", "ä世🙂", "^[200~a\u{3}b^[Ac",
  ]

  @Test("Ctrl-C arrives within a second after any part of an escape sequence", arguments: sequences)
  func prefixes(_ sequence: String) {
    let bytes = Array(sequence.replacing("^", with: "\u{1B}").utf8)
    for count in 0...bytes.count {
      for (key, codes) in [("\u{3}", false), ("\u{3}", true), ("\u{1B}[99;5u", true)] {
        for pause in [0, 30, 200] {
          var line = Line(codes: codes)
          line.send(bytes[..<count])
          line.pass(pause)
          // The key is held down, so it repeats.
          for _ in 0..<30 {
            line.send(key.utf8)
            line.pass(33)
          }
          #expect(line.found.contains("C-c"), "\(count) of \(sequence), \(pause) ms, \(codes): \(line.found)")
        }
      }
    }
  }

  /// A session with its own clock, in place of a device's timer.
  private struct Line {
    private var session = TerminalSession(size: Size(width: 10, height: 1), capabilities: .init())
    private var now = 0
    private var deadline: Int?
    private var wait: InputParser.Wait?
    private(set) var found: [String] = []

    init(codes: Bool) { if codes { send("\u{1B}[?5u".utf8) } }

    mutating func send(_ bytes: some Sequence<UInt8>) {
      var events: [InputEvent] = []
      var output: ContiguousArray<UInt8> = []
      Array(bytes).withUnsafeBytes { session.receive($0, events: &events, output: &output) }
      note(events)
    }

    mutating func pass(_ milliseconds: Int) {
      let end = now + milliseconds
      while let date = deadline, date <= end {
        now = date
        deadline = nil
        var events: [InputEvent] = []
        var output: ContiguousArray<UInt8> = []
        session.flush(events: &events, output: &output)
        note(events)
      }
      now = end
    }

    private mutating func note(_ events: [InputEvent]) {
      found += events.map { describe(.event($0)) }
      let before = wait
      wait = session.wait
      switch wait {
      case nil: deadline = nil
      case .more: deadline = now + Int(TerminalSession.escapeDelay / .milliseconds(1))
      case .end: if wait != before { deadline = now + Int(TerminalSession.holdLimit / .milliseconds(1)) }
      }
    }
  }

  @Test("a paste whose end was lost is reported, and later input is keys again")
  func lostEnd() throws {
    let found = try typed([(0, "^[200~abc"), (300, "\u{3}"), (600, "^"), (900, "q")], .all)
    #expect(found.events == "paste(abc)… C-c")
    #expect(try typed([(0, "^[200~abc"), (700, "q")]).events == "paste(abc)… q")
    // Keys typed steadily do not continue the paste.
    let keys = (1...20).map { ($0 * 60, "x") }
    #expect(try typed([(0, "^[200~abc")] + keys).events.hasSuffix("x x x"))
  }

  @Test("mouse events do not keep a paste alive whose end was lost, and Ctrl-C among them is a key")
  func lostEndAmongReports() {
    var line = Line(codes: false)
    line.send("\u{1B}[200~abc".utf8)
    for step in 0..<60 {
      // Before the paste times out, more bytes arrive than are held without a mouse event.
      if step == 5 { line.send("\u{3}".utf8) }
      line.send("\u{1B}[<35;\(10 + step);20M".utf8)
      line.pass(16)
    }
    var expected = (0..<60).map { "move@\(9 + $0),19" }
    expected.insert("C-c", at: 5)
    expected.insert("paste(abc)…", at: 0)
    #expect(line.found == expected)
  }

  @Test("a slow paste arrives whole, and a paste with a pause is not taken for keys")
  func slowPaste() throws {
    let part = String(repeating: "line\r", count: 40)
    let steps = (0..<20).map { ($0 * 300, $0 == 0 ? "^[200~" + part : part) } + [(6000, "^[201~q")]
    let found = try typed(steps)
    #expect(found.events.hasPrefix("paste(line\n") && found.events.hasSuffix("line\n) q"))
    let pause = try typed([(0, "^[200~" + part), (900, part), (950, part + "^[201~q")])
    #expect(!pause.events.contains("enter") && pause.events.hasSuffix(") q"), "\(pause.events.suffix(40))")
  }

  @Test(
    "the rest of a paste after a pause is never a key, and Ctrl-C after it is",
    arguments: [
      ([(700, "yz; two\rthree^[201~q"), (800, "\r")], "paste(yz; two\nthree) q enter"),
      ([(700, "yz^[201~"), (800, "\r")], "paste(yz) enter"),
      ([(700, "yz\rtwo"), (760, " three^[201~q")], "paste(yz\ntwo three) q"),
      ([(700, "yz\rtwo^[20"), (760, "1~q")], "paste(yz\ntwo) q"),
      ([(700, "yz\rtwo"), (760, "\u{3}")], "paste(yz\ntwo)… C-c"),
      // Not the rest of a paste, but keys.
      ([(700, "\r"), (760, "yz"), (820, "\u{3}")], "enter y z C-c"), ([(700, "^[201~"), (760, "a\r")], "a enter"),
      // A key has been typed, so that fast keys are keys again, but the end of a paste is still recognised.
      ([(700, "a"), (760, "b\r"), (820, "\u{3}")], "a b enter C-c"),
      ([(700, "a"), (760, "yz\rtwo^[201~q")], "a paste(yz\ntwo) q"),
    ] as [([(Int, String)], String)])
  func restOfPaste(_ rest: [(Int, String)], _ events: String) throws {
    for features in [HeadlessTerminal.Features.none, .all] {
      #expect(try typed([(0, "^[200~x")] + rest, features).events == "paste(x)… " + events)
    }
  }

  @Test(
    "Alt letters that begin control strings swallow no input",
    arguments: [
      ([(0, "^]abc"), (100, "def"), (200, "\r")], "A-] a b c d e f enter"),
      ([(0, "^P"), (33, "^P"), (66, "^P"), (266, "z")], "A-P A-P A-P z"),
      ([(0, "^]"), (30, "h"), (110, "e"), (190, "l"), (270, "lo")], "A-] h e l l o"),
      ([(0, "^]"), (30, "1"), (60, "2")], "A-] 1 2"), ([(0, "^^"), (30, "x")], "escape A-x"),
      ([(0, "^_"), (30, "x"), (100, "y")], "A-_ x y"), ([(0, "^^^"), (30, "x")], "escape escape A-x"),
      ([(0, "^[x"), (100, "y")], "A-[ x y"), ([(0, "^[["), (700, "y")], "A-[ [ y"),
    ] as [([(Int, String)], String)])
  func alt(_ steps: [(Int, String)], _ events: String) throws { #expect(try typed(steps).events == events) }

  @Test("Alt-caret and other Alt letters are recognised as keys immediately")
  func caret() throws {
    #expect(parsed([Array("\u{1B}\u{5E}abc".utf8)]).joined(separator: " ") == "A-^ a b c")
    #expect(parsed("^Xabc") == "A-X a b c")
  }

  @Test(
    "mouse events, paste marks and keys that arrive in two parts are not taken for text",
    arguments: ["^[<0;3;1M", "^[200~hi^[201~", "^[A", "^[3~", "^[?62;22c", "^[97;5u", "^[I"], [60, 300])
  func split(_ sequence: String, _ pause: Int) throws {
    let bytes = Array(sequence)
    let whole = parsed(sequence).replacing("?attributes", with: "")
    for features in [HeadlessTerminal.Features.none, .all] {
      for count in 1...2 {
        let found = try typed([(0, String(bytes[..<count])), (pause, String(bytes[count...]))], features)
        // Without the keyboard protocol, a letter after Alt-[ is an ordinary letter.
        if !features.keyboard, count == 2, ["^[A", "^[I"].contains(sequence) { continue }
        let keys = features.keyboard ? "" : count == 1 ? "escape " : "A-[ "
        #expect((found.events + " ").hasPrefix(keys + whole), "\(count): \(found)")
        #expect(found.text == (sequence.contains("hi") ? "hi" : ""), "\(count): \(found)")
      }
    }
  }

  @Test(
    "mouse events, paste marks and replies in three parts are not taken for text",
    arguments: ["^[<0;3;1M", "^[200~hi^[201~", "^[?62;22c", "^[3~", "^[1;5A"])
  func splitTwice(_ sequence: String) throws {
    let whole = parsed(sequence).replacing("?attributes", with: "")
    let steps = [(0, "^"), (60, "["), (120, String(sequence.dropFirst(2))), (240, "x")]
    for features in [HeadlessTerminal.Features.none, .all] {
      let found = try typed(steps, features)
      let events = (features.keyboard ? "" : "escape [ ") + whole + (whole.isEmpty ? "" : " ") + "x"
      #expect(found.events == events)
    }
  }

  @Test(
    "the rest of a sequence whose time was over is not taken for text, and keys after one without a rest are keys",
    arguments: [
      ([(0, "^[<35;3"), (700, ";1M"), (800, "x")], "move@2,0 x"), ([(0, "^[<0;3;1"), (700, "Mx")], "press:left@2,0 x"),
      ([(0, "^[3"), (700, "~"), (800, "~")], "delete ~"), ([(0, "^[20"), (700, "0~a\rb^[201~")], "paste(a\nb)"),
      ([(0, "^[1;"), (700, "5A")], "C-up"), ([(0, "^[?62"), (700, "c"), (800, "c")], "c"),
      ([(0, "^[3"), (700, "x")], "x"), ([(0, "^[99;5"), (700, "u")], "u"),
      ([(0, "^[3"), (700, "5"), (760, "~")], "5 ~"),
      ([(0, "^[<35;3"), (700, "1A")], "1 A"), ([(0, "^[3"), (700, "\u{3}")], "C-c"),
    ] as [([(Int, String)], String)])
  func lateRest(_ steps: [(Int, String)], _ events: String) throws {
    for features in [HeadlessTerminal.Features.none, .all] {
      #expect(try typed(steps, features).events == events)
    }
  }

  @Test(
    "under the keyboard protocol, an ESC whose rest was lost changes no later key",
    arguments: [
      ([(0, "^"), (100, "^[99;5u")], "C-c"), ([(0, "^^"), (490, "^"), (600, "[99;5u")], "C-c"),
      ([(0, "^^[A")], "up"), ([(0, "^"), (50, "ab")], "a b"), ([(0, "^"), (50, "é\r")], "é enter"),
      ([(0, "^"), (600, "[99;5u")], "C-c"), ([(0, "^["), (600, "99;5u")], "C-c"), ([(0, "^"), (600, "[")], "["),
    ] as [([(Int, String)], String)])
  func strayEscape(_ steps: [(Int, String)], _ events: String) throws {
    #expect(try typed(steps, .all).events == events)
  }

  @Test("under the keyboard protocol, ESC alone is not a key; the Escape key arrives as its code")
  func loneEscape() throws {
    #expect(try typed([(0, "^"), (900, "x")], .all).events == "x")
    #expect(try typed([(0, "^[27u")], .all).events == "escape")
    #expect(try typed([(0, "^")]).events == "escape")
  }

  @Test("characters with Super, Hyper or Meta are not taken for text")
  func commands() throws {
    #expect(try typed([(0, "a^[99;9u^[99;17u^[99;33u^[99;3ub")], .all).text == "ab")
  }
}
