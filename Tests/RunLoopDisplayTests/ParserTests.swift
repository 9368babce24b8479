// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import RunLoopDisplay

/// Parses bytes that arrive in chunks, and describes the results; in a text, `^` stands for ESC.
func parsed(_ chunks: [[UInt8]], flushes: Bool = false, pasteLimit: Int = 1 << 20) -> [String] {
  var parser = InputParser(pasteLimit: pasteLimit)
  var found: [String] = []
  for chunk in chunks { chunk.withUnsafeBytes { parser.parse($0) { found.append(describe($0)) } } }
  if flushes { parser.flush { found.append(describe($0)) } }
  return found
}

func parsed(_ text: String, flushes: Bool = false) -> String {
  parsed([Array(text.replacing("^", with: "\u{1B}").utf8)], flushes: flushes).joined(separator: " ")
}

func describe(_ input: ParsedInput) -> String {
  func held(_ modifiers: KeyModifiers) -> String {
    let names: [(KeyModifiers, String)] = [
      (.super, "super-"), (.hyper, "hyper-"), (.meta, "meta-"), (.control, "C-"), (.alt, "A-"), (.shift, "S-"),
    ]
    return names.map { modifiers.contains($0.0) ? $0.1 : "" }.joined()
  }
  func place(_ point: Point) -> String { "\(point.x),\(point.y)" }
  switch input {
  case .event(.key(let event)):
    let name =
      switch event.key {
      case .character(let character): character == " " ? "space" : String(character)
      case .function(let number): "F\(number)"
      default: "\(event.key)"
      }
    return held(event.modifiers) + name
  case .event(.mouse(let event)):
    let action =
      switch event.action {
      case .press(let button): "press:\(button)"
      case .release(let button): "release:\(button)"
      case .drag(let button): "drag:\(button)"
      case .move: "move"
      case .wheel(let wheel): "wheel:\(wheel)"
      }
    return held(event.modifiers) + action + "@" + place(event.location)
  case .event(.paste(let text, let isTruncated)): return "paste(\(text))" + (isTruncated ? "…" : "")
  case .event(.focus(let isInFront)): return isInFront ? "in" : "out"
  case .event(let event): return "\(event)"
  case .answer(.attributes): return "?attributes"
  case .answer(.mode(let mode, let state)): return "?mode(\(mode),\(state))"
  case .answer(.keyboard(let flags)): return "?keyboard(\(flags))"
  case .answer(.cursor(let point)): return "?cursor(\(place(point)))"
  case .answer(.version(let text)): return "?version(\(text))"
  case .answer(.other): return "?other"
  }
}

@Suite("Parser of a terminal's input")
struct ParserTests {
  @Test(
    "keys are recognised as encoded by xterm, vt, rxvt, the Linux console and kitty",
    arguments: [
      ("aZ1 ", "a Z 1 space"), ("ä世🙂", "ä 世 🙂"), ("\r\n\t\u{7F}\u{8}", "enter enter tab backspace backspace"),
      ("\u{1}\u{1A}\u{3}\u{0}\u{1C}\u{1F}", "C-a C-z C-c C-space C-\\ C-_"),
      ("^a^Z^ä^\r^\u{7F}^\u{1}", "A-a A-Z A-ä A-enter A-backspace C-A-a"),
      ("^[A^[B^[C^[D^[H^[F", "up down right left home end"), ("^OA^OB^OC^OD^OH^OF", "up down right left home end"),
      ("^OP^OQ^OR^OS", "F1 F2 F3 F4"), ("^[11~^[12~^[13~^[14~^[15~", "F1 F2 F3 F4 F5"),
      ("^[[A^[[B^[[C^[[D^[[E", "F1 F2 F3 F4 F5"),
      ("^[17~^[18~^[19~^[20~^[21~^[23~^[24~", "F6 F7 F8 F9 F10 F11 F12"),
      ("^[25~^[26~^[28~^[29~^[31~^[32~^[33~^[34~", "F13 F14 F15 F16 F17 F18 F19 F20"),
      ("^[1~^[2~^[3~^[4~^[5~^[6~^[7~^[8~", "home insert delete end pageUp pageDown home end"),
      ("^[1;2A^[1;3B^[1;5C^[1;8D^[3;5~^[1;2P^[1;5R^[15;2~", "S-up A-down C-right C-A-S-left C-delete S-F1 C-F3 S-F5"),
      ("^^[A^^OA^^[3~", "A-up A-up A-delete"), ("^[a^[b^Oa^Od", "S-up S-down C-up C-left"),
      ("^[3^^[3$^[3@^[7^", "C-delete S-delete C-S-delete C-home"),
      ("^[Z", "S-tab"), ("^OM^Oj^Ok^Om^Op^Oy", "enter * + - 0 9"), ("^O5A^O1;5P", "C-up C-F1"),
      ("^[27u^[13u^[9u^[127u", "escape enter tab backspace"),
      ("^[97u^[97;2u^[97:65;2u^[97;5u^[97;3u^[65;5u", "a A A C-a A-a C-a"),
      ("^[97;1:1u^[97;1:2u^[97;1:3u^[1;1:3A", "a a"),
      ("^[228u^[57376u^[57414u^[57417u^[57400u^[57358u", "ä F13 enter left 1"),
      ("^[99;9u^[99;17u^[99;33u^[1;9D^[127;9u", "super-c hyper-c meta-c super-left super-backspace"),
      // Cyrillic, Greek, Hebrew and Arabic keyboards, with and without the corresponding Latin key.
      ("^[1089;5u^[1089::99;5u^[1089:1057:99;6u^[1089::99u", "C-c C-c C-S-c с"),
      ("^[968;5u^[1489;5u^[1572;5u^[1089;3u^[1089:1057:99;4u", "C-c C-c C-c A-c A-C"),
      // A key of a non-US Latin keyboard is the letter printed on it.
      ("^[106::99;5u^[228::39;3u", "C-j A-'"),
      ("^[49;4u^[49;3u^[49:33;4u^[233;4u^[49;2u", "A-S-1 A-1 A-! A-É S-1"),
      ("^[27;5;97~^[27;2;13~", "C-a S-enter"), ("^[97;5;97u", "C-a"), ("^[57410u^[57411u", "/ *"),
    ] as [(String, String)])
  func keys(_ bytes: String, _ events: String) {
    // rxvt ends keys with Control in the character that stands for ESC here.
    let text = bytes.replacing("3^^[3$", with: "3\u{5E}^[3$")
    if bytes.contains("3^^[3$") {
      let raw = "\u{1B}[3\u{5E}\u{1B}[3$\u{1B}[3@\u{1B}[7\u{5E}"
      #expect(parsed([Array(raw.utf8)]).joined(separator: " ") == events)
    } else {
      #expect(parsed(text) == events)
    }
  }

  @Test(
    "the mouse is recognised in the encodings 1006, 1015 and 1000",
    arguments: [
      ("^[<0;1;1M^[<0;3;2m", "press:left@0,0 release:left@2,1"),
      ("^[<32;5;6M^[<34;5;6M", "drag:left@4,5 drag:right@4,5"),
      ("^[<64;1;1M^[<65;1;1M^[<66;1;1M^[<67;1;1M", "wheel:up@0,0 wheel:down@0,0 wheel:left@0,0 wheel:right@0,0"),
      ("^[<20;10;20M^[<8;1;1M", "C-S-press:left@9,19 A-press:left@0,0"),
      ("^[<35;1;1M^[<128;1;1M^[<64;1;1m", "move@0,0"),
      ("^[M !!^[M#!!", "press:left@0,0 release:left@0,0"), ("^[M#!!", ""), ("^[M`%&", "wheel:up@4,5"),
      ("^[32;5;6M^[35;5;6M", "press:left@4,5 release:left@4,5"), ("^[<2;1M", "press:right@0,0"),
    ])
  func mouse(_ bytes: String, _ events: String) { #expect(parsed(bytes) == events) }

  @Test(
    "the terminal's replies are never taken for keys",
    arguments: [
      ("^[?62;22c", "?attributes"), ("^[?2026;2$y", "?mode(2026,2)"), ("^[?2027;0$y", "?mode(2027,0)"),
      ("^[?1u", "?keyboard(1)"),
      ("^[12;34R", "?cursor(33,11)"), ("^[?12;34;1R", "?cursor(33,11)"), ("^P>|xterm(380)^\\", "?version(xterm(380))"),
      ("^]11;rgb:0000/0000/0000\u{7}", "?other"), ("^]11;rgb:0000/0000/0000^\\a", "?other a"),
      ("^_Gi=1;OK^\\", "?other"),
      ("^[>1;10;0c", "?other"), ("^[=1c", "?other"), ("^^[?62c", "escape ?attributes"), ("^P1$r0m^\\", "?other"),
      ("^[?997;1n", "?other"),
      ("^[I^[O^^[I", "in out escape in"), ("x^[?2026;2$yq", "x ?mode(2026,2) q"),
    ])
  func answers(_ bytes: String, _ events: String) { #expect(parsed(bytes) == events) }

  @Test("a paste is one event with its line ends, and key sequences in it are text")
  func paste() {
    #expect(parsed("a^[200~q\u{3}^[Ax\rä\r\nb\n^[201~b") == "a paste(q\u{3}\u{1B}[Ax\nä\nb\n) b")
    #expect(parsed("^[200~^[201~") == "paste()")
    #expect(parsed("^[200~^[20^[201~") == "paste(\u{1B}[20)")
    #expect(parsed("^[200~a\u{18}b^[201~") == "paste(a\u{18}b)")
    // An end mark without a beginning.
    #expect(parsed("a^[201~b") == "a b")
    #expect(
      parsed([[0x1B] + Array("[200~a".utf8) + [0xFF, 0xC3] + [0x1B] + Array("[201~".utf8)]) == [
        "paste(a\u{FFFD}\u{FFFD})"
      ])
  }

  @Test("an overlong paste is cut between two characters, and reported as cut")
  func longPaste() {
    let begin = Array("\u{1B}[200~".utf8)
    let end = Array("\u{1B}[201~".utf8)
    #expect(parsed([begin + Array("abcdef".utf8) + end + [0x78]], pasteLimit: 4) == ["paste(abcd)…", "x"])
    #expect(parsed([begin + Array("abcd".utf8) + end], pasteLimit: 4) == ["paste(abcd)"])
    #expect(parsed([begin + Array("ab世".utf8) + end], pasteLimit: 4) == ["paste(ab)…"])
    #expect(parsed([begin + Array("a世x".utf8) + end], pasteLimit: 4) == ["paste(a世)…"])
  }

  @Test(
    "CAN ends any escape sequence, and other control characters are keys that end it",
    arguments: [
      ("^[1;2\u{18}x", "x"), ("^\u{18}x", "x"), ("^O\u{18}x", "x"), ("^[[\u{18}x", "x"), ("^]0;title\u{18}x", "x"),
      ("^P>|a\u{18}x", "x"), ("^Pj\u{3}x", "A-P j C-c x"), ("^]0;a\u{D}", "A-] 0 ; a enter"),
      ("^[M!\u{18}x", "x"), ("^[<0;1\u{1A}x", "x"), ("^^[\u{18}x", "x"), ("^[1;2\u{3}x", "C-c x"), ("^[1^[A", "up"),
      ("^]0;a^[A", "A-] 0 ; a up"), ("^\u{3}x", "escape C-c x"), ("^^\u{3}", "escape escape C-c"),
      ("^[1äx", "ä x"), ("\u{18}", "C-x"),
    ])
  func cancelled(_ bytes: String, _ events: String) { #expect(parsed(bytes) == events) }

  @Test(
    "unknown escape sequences are skipped as a whole",
    arguments: [
      ("^[999~x", "x"), ("^[1;2;3;4;5;6;7;8;9;10Ax", "x"), ("^[1?Ax", "x"), ("^[ qx", "?other x"),
      ("^[99999999999999999999~x", "x"),
      ("^[<x", "?other"), ("^OZx", "A-O Z x"), ("^[Wx", "A-[ W x"), ("^[57999ux", "x"),
      ("^[1114112ux", "x"),
      ("^[55296ux", "x"),
    ])
  func meaningless(_ bytes: String, _ events: String) { #expect(parsed(bytes) == events) }

  @Test(
    "a key with Alt that could begin a sequence is reported if the next byte is another key",
    arguments: [
      ("^O^m", "A-O enter"), ("^[^m", "A-[ enter"), ("^[\u{3}", "A-[ C-c"), ("^Oé", "A-O é"), ("^[é", "A-[ é"),
      ("^O x", "A-O space x"), ("^O^O^m", "A-O A-O enter"), ("^[^[^[A", "A-[ A-[ up"), ("^O^[A", "A-O up"),
      ("^[[x", "A-[ [ x"), ("^[[^m", "A-[ [ enter"), ("^[[^[A", "A-[ [ up"), ("^^O^m", "escape A-O enter"),
      ("^^[1^m", "escape enter"),
    ])
  func typedBeginnings(_ bytes: String, _ events: String) {
    #expect(parsed(bytes.replacing("^m", with: "\r")) == events)
  }

  @Test(
    "invalid UTF-8 input becomes replacement characters",
    arguments: [
      ([0x80, 0x61], "\u{FFFD} a"), ([0xC3, 0x61], "\u{FFFD} a"), ([0xE4, 0xB8, 0xE4, 0xB8, 0x96], "\u{FFFD} 世"),
      ([0xC0, 0xAF], "\u{FFFD} \u{FFFD}"), ([0xED, 0xA0, 0x80], "\u{FFFD} \u{FFFD} \u{FFFD}"), ([0xF5], "\u{FFFD}"),
      ([0xF0, 0x9F, 0x1B, 0x5B, 0x41], "\u{FFFD} up"), ([0x1B, 0xC3, 0xA4], "A-ä"),
      ([0x1B, 0xC3, 0x61], "A-\u{FFFD} a"),
    ] as [([UInt8], String)])
  func malformed(_ bytes: [UInt8], _ events: String) { #expect(parsed([bytes]).joined(separator: " ") == events) }

  @Test(
    "a lone beginning of an escape sequence is a key",
    arguments: [
      ("^", "escape"), ("^^", "A-escape"), ("^[", "A-["), ("^O", "A-O"), ("^P", "A-P"), ("^]", "A-]"),
      ("^^[", "escape A-["), ("^[1", ""), ("^^^", "escape A-escape"), ("^[[", "A-[ ["), ("^]11", "A-] 1 1"),
      ("a", "a"), ("^[M", ""), ("^[200~abc", "paste(abc)…"), ("^[200~", ""), ("^]0;a^", "A-] 0 ; a escape"),
    ])
  func flushed(_ bytes: String, _ events: String) { #expect(parsed(bytes, flushes: true) == events) }

  @Test("pastes that lost their ends one after the other do not hold back a key any longer than one of them")
  func nestedPastes() {
    #expect(parsed("^[200~a^[200~^[200~b\u{3}c", flushes: true) == "paste(a)… paste(b)… C-c c")
    #expect(parsed(String(repeating: "^[200~", count: 20) + "^x", flushes: true) == "A-x")
    // One that may still be arriving is awaited.
    #expect(parsed("^[200~a^[200~b", flushes: true) == "paste(a)…")
  }

  @Test("after a flush the next key stands alone")
  func afterFlush() {
    var parser = InputParser()
    var found: [String] = []
    func take(_ text: String) {
      Array(text.utf8).withUnsafeBytes { parser.parse($0) { found.append(describe($0)) } }
    }
    take("\u{1B}")
    #expect(parser.wait == .more)
    parser.flush { found.append(describe($0)) }
    #expect(parser.wait == nil)
    take("x[A")
    take("\u{1B}[")
    parser.flush { found.append(describe($0)) }
    take("\u{1B}[1")
    #expect(parser.wait != .more)
    take("A")
    #expect(found == ["escape", "x", "[", "A", "A-[", "up"])
  }

  @Test(
    "a reply split by a flush is not taken for text if one is awaited",
    arguments: ["\u{1B}[?62;22c", "\u{1B}P>|xterm\u{1B}\\", "\u{1B}[?2026;2$y"])
  func lateAnswers(_ answer: String) {
    let bytes = Array(answer.utf8)
    for place in 1..<bytes.count {
      var parser = InputParser()
      var found: [String] = []
      func take(_ bytes: some Sequence<UInt8>) {
        Array(bytes).withUnsafeBytes { parser.parse($0) { found.append(describe($0)) } }
      }
      take(bytes[..<place])
      // The rest arrives before its time is over.
      if parser.wait == .more { parser.flush(awaitsAnswers: true) { found.append(describe($0)) } }
      take(bytes[place...])
      take("x".utf8)
      let keys = place == 1 ? ["escape"] : place == 2 ? [bytes[1] == 0x50 ? "A-P" : "A-["] : []
      #expect(found.count == keys.count + 2 && Array(found.prefix(keys.count)) == keys, "\(place): \(found)")
      #expect(found[found.count - 2].hasPrefix("?") && found.last == "x", "\(place): \(found)")
    }
  }

  @Test("keys after a flush are keys even if a reply is awaited")
  func keysAfterFlush() {
    var parser = InputParser()
    var found: [String] = []
    func take(_ text: String) {
      Array(text.utf8).withUnsafeBytes { parser.parse($0) { found.append(describe($0)) } }
    }
    for text in ["\u{1B}", "[", "\u{1B}", "x", "\u{1B}", "[A", "\u{1B}", "\u{1B}[A", "\u{1B}", "P", "q"] {
      take(text)
      parser.flush(awaitsAnswers: true) { found.append(describe($0)) }
    }
    #expect(found.joined(separator: " ") == "escape [ escape x escape up escape up escape P q")
  }

  @Test("parsed events do not depend on how the bytes are split", arguments: 0..<200)
  func splits(_ seed: Int) {
    var random = SplitMix64(seed: UInt64(seed))
    let bytes = RandomInput.bytes(&random)
    let whole = parsed([bytes])
    #expect(parsed(bytes.map { [$0] }) == whole)
    for _ in 0..<8 {
      var chunks: [[UInt8]] = []
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = 1 + random.below(min(9, rest.count))
        chunks.append(Array(rest.prefix(count)))
        rest = rest.dropFirst(count)
      }
      #expect(parsed(chunks) == whole)
    }
  }

  @Test(
    "escape sequences without an end hold a bounded number of bytes",
    arguments: ["\u{1B}[", "\u{1B}]", "\u{1B}P", "\u{1B}[?", "\u{1B}[1:", "\u{1B}[200~"])
  func endless(_ beginning: String) {
    var parser = InputParser(pasteLimit: 1000)
    func take(_ bytes: [UInt8]) { bytes.withUnsafeBytes { parser.parse($0) { _ in } } }
    take(Array(beginning.utf8))
    for _ in 0..<1000 { take(Array(repeating: 0x31, count: 1000)) }
    #expect(parser.text.count <= 1000)
    #expect(parser.text.capacity <= 4096)
  }
}

/// Bytes that a terminal could send, and some that it never would.
enum RandomInput {
  private static let parts = [
    "a", "Z", "世", "\u{1B}", "\u{1B}[", "\u{1B}O", "\u{1B}[A", "\u{1B}[1;5C", "\u{1B}[<0;3;4M", "\u{1B}[M !!",
    "\u{1B}[200~", "\u{1B}[201~", "\u{18}", "\r",
    "\u{1B}[?62c", "\u{1B}P>|x\u{1B}\\", "\u{1B}]0;", "\u{7}", ";", "1", "~", "$", "?", ":", "u", "\u{1B}[97;2u",
    "\u{1B}[[A", "\u{1B}\\", "é\u{301}",
  ]

  static func bytes(_ random: inout SplitMix64) -> [UInt8] {
    var bytes: [UInt8] = []
    for _ in 0..<60 {
      if random.oneIn(4) {
        bytes.append(UInt8(random.below(256)))
      } else {
        bytes += Array(parts[random.below(parts.count)].utf8)
      }
    }
    return bytes
  }
}
