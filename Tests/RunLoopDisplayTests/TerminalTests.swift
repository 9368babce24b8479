// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

@Suite("A terminal", .serialized)
struct TerminalTests {
  @Test("a frame does not wait for a reply, and late replies are not taken for keys")
  func answers() throws {
    let terminal = try PseudoTerminal()
    try terminal.start(["return"])
    #expect(terminal.expect("\u{1B}[c") != nil)
    #expect(terminal.expect("frame return") != nil)
    terminal.type("\u{1B}[?2026;2$y\u{1B}[?2027;0$y\u{1B}P>|XTerm(380)\u{1B}\\\u{1B}[?0u\u{1B}[?62;22c")
    // The keyboard protocol was granted.
    #expect(terminal.expect("\u{1B}[>5u") != nil)
    terminal.type("x")
    #expect(terminal.note("key")?.contains("character(\"x\")") == true)
    terminal.resize(columns: 40, rows: 5)
    #expect(terminal.note("resize")?.contains("width: 40, height: 5") == true)
    // Synchronised from now on.
    #expect(terminal.expect("\u{1B}[?2026h") != nil)
    #expect(terminal.expect("frame return\u{1B}[?2026l") != nil)
    terminal.type("q")
    #expect(terminal.end() == 0)
    #expect(terminal.text.contains("\u{18}\u{1B}[?2026l\u{1B}[<u\u{1B}[r"))
  }

  @Test("a lone ESC becomes a key once no more can follow")
  func escape() throws {
    let terminal = try PseudoTerminal()
    try terminal.start(["return"])
    #expect(terminal.expect("frame") != nil)
    terminal.type("\u{1B}")
    #expect(terminal.note("key")?.contains("escape") == true)
    terminal.type("\u{1B}[A\u{1B}")
    #expect(terminal.note("key")?.contains("up") == true)
    #expect(terminal.note("key")?.contains("escape") == true)
    terminal.type("q")
    #expect(terminal.end() == 0)
  }

  @Test("a terminal of one cell shows one cell")
  func tiny() throws {
    let terminal = try PseudoTerminal(columns: 1, rows: 1)
    try terminal.start(["return"])
    #expect(terminal.note("open") == "open 1x1")
    #expect(terminal.expect("\u{1B}[2Jf") != nil)
    terminal.type("q")
    #expect(terminal.end() == 0)
  }

  @Test("a terminal that does not read holds one frame, and gets the next when it reads again")
  func stalled() throws {
    let terminal = try PseudoTerminal(columns: 500, rows: 200)
    try terminal.start(["flood"])
    terminal.note("open")
    // Keys are served while the output is stuck.
    for _ in 0..<3 {
      terminal.type("x")
      #expect(terminal.note("key")?.hasSuffix("ready: false") == true)
    }
    #expect(terminal.note("shown 3", reads: true) != nil)
    terminal.type("q")
    #expect(terminal.end() == 0)
    #expect(terminal.text.contains("after"))
  }

  @Test("a terminal that reads again just after replying to a query gets the next frame")
  func answersBehindFrame() throws {
    // A frame is larger than the terminal's buffer, but its remainder is not.
    let terminal = try PseudoTerminal(columns: 200, rows: 100)
    try terminal.start(["flood"])
    terminal.note("open")
    terminal.type("x")
    #expect(terminal.note("key")?.hasSuffix("ready: false") == true)
    // The program reads the terminal's reply, and writes in response, before it notices the room for output.
    terminal.send(SIGSTOP)
    var status: Int32 = 0
    #expect(waitpid(terminal.process, &status, WUNTRACED) == terminal.process)
    terminal.type("\u{1B}[?0u")
    terminal.readAll()
    terminal.send(SIGCONT)
    #expect(terminal.note("shown 2", reads: true) != nil)
    terminal.type("q")
    #expect(terminal.end() == 0)
  }

  @Test("a terminal that hangs up ends the input with one event")
  func hangUp() throws {
    let terminal = try PseudoTerminal()
    // SIGHUP would end it.
    try terminal.start(["nohup"])
    #expect(terminal.expect("frame") != nil)
    terminal.hangUp()
    #expect(terminal.note("hangUp") != nil)
    #expect(terminal.note("frames") != nil)
    var status: Int32 = 0
    #expect(waitpid(terminal.process, &status, 0) == terminal.process)
  }

  @Test("SIGHUP ends a program whose terminal hangs up, unless it ignores the signal")
  func hangUpSignal() throws {
    let terminal = try PseudoTerminal()
    try terminal.start(["return"])
    #expect(terminal.expect("frame") != nil)
    terminal.hangUp()
    var status: Int32 = 0
    #expect(waitpid(terminal.process, &status, 0) == terminal.process)
    #expect(status == SIGHUP)
  }
}
