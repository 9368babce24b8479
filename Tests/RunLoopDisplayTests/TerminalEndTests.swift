// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import TestSupport
import Testing

/// Everything that restores the terminal, whatever was granted.
private let leaving =
  "\u{1B}[r\u{1B}[m\u{1B}[?1004l\u{1B}[?2004l\u{1B}[?1006l\u{1B}[?1002l\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

@Suite("A terminal is restored", .serialized)
struct TerminalEndTests {
  @Test(
    "the terminal is restored however the program ends",
    arguments: [
      ("return", 0), ("exit", 7), ("trap", -SIGILL), ("segv", -SIGSEGV), ("overflow", -SIGSEGV), ("abort", -SIGABRT),
      ("overflow of a worker", -SIGSEGV),
    ])
  func ends(_ how: String, _ status: Int32) throws {
    let terminal = try PseudoTerminal()
    let modes = terminal.modes
    try terminal.start([how])
    terminal.note("open 80x24")
    #expect(terminal.expect("frame \(how)") != nil)
    #expect(terminal.modes != modes)
    terminal.type("e")
    let ended = terminal.end()
    // On machines other than Intel's, a trap raises another signal.
    #expect(ended == status || how == "trap" && ended == -SIGTRAP)
    let count = terminal.text.components(separatedBy: leaving).count - 1
    #expect(count == 1, "\(terminal.text.debugDescription)")
    #expect(terminal.modes == modes)
    if how == "return" { #expect(terminal.text.hasSuffix(leaving + "after\r\n")) }
    if how == "trap" {
      #expect(terminal.text.components(separatedBy: leaving).last!.contains("the trap that the test wants"))
    }
  }

  /// The thread sanitizer delays most signals until they interrupt nothing of its own, but not fault signals.
  ///
  /// If another process sent one of those, the handler would wait for what the interrupted function holds.
  private static let sentSignals =
    [SIGTERM, SIGHUP, SIGQUIT, SIGINT, SIGUSR1, SIGALRM] + (isSanitizedForThreads ? [] : [SIGABRT, SIGSEGV])

  @Test("the terminal is restored when a signal ends the program", arguments: sentSignals)
  func signals(_ signal: Int32) throws {
    let terminal = try PseudoTerminal()
    let modes = terminal.modes
    try terminal.start(["return"])
    #expect(terminal.expect("frame") != nil)
    #expect(terminal.end(by: signal) == -signal)
    #expect(terminal.text.hasSuffix(leaving))
    #expect(terminal.modes == modes)
  }

  @Test("no frame is drawn once the terminal is restored because another thread ends the program")
  func endOnAnotherThread() throws {
    let terminal = try PseudoTerminal()
    try terminal.start(["exit of a worker"])
    terminal.note("open")
    terminal.type("e")
    #expect(terminal.end() == 7)
    // The program ended after the main thread had drawn further frames.
    #expect(terminal.note("drawn") != nil)
    #expect(terminal.text.hasSuffix(leaving), "\(terminal.text.suffix(500).debugDescription)")
  }

  @Test("an inline frame stays when the terminal is restored, and later output begins below it")
  func inline() throws {
    for (how, signal, status, rows) in [
      ("return", nil, 0, 3), ("exit", nil, 7, 3), ("exit", nil, 7, 2), ("return", SIGTERM, -SIGTERM, 3),
      ("return", SIGTERM, -SIGTERM, 2),
    ] as [(String, Int32?, Int32, Int)] {
      let restored = "\u{1B}[?1004l\u{1B}[?2004l\u{1B}[?25h\u{1B}8\u{1B}[?7h\u{1B}[\(rows - 1)B\r\n"
      let terminal = try PseudoTerminal()
      let modes = terminal.modes
      try terminal.start([how], environment: ["INLINE": "3"])
      terminal.note("open 80x3")
      #expect(terminal.expect("frame \(how)")?.contains("\u{1B}[?1049h") == false)
      terminal.resize(columns: 40, rows: 2)
      #expect(terminal.note("resize")?.contains("width: 40, height: 2") == true)
      #expect(terminal.expect("frame \(how)") != nil)
      if rows == 3 {
        terminal.resize(columns: 80, rows: 24)
        #expect(terminal.note("resize")?.contains("width: 80, height: 3") == true)
        #expect(terminal.expect("frame \(how)") != nil)
      }
      if signal == nil { terminal.type("e") }
      #expect(terminal.end(by: signal) == status)
      #expect(terminal.text.components(separatedBy: restored).count == 2, "\(terminal.text.debugDescription)")
      #expect(
        !terminal.text.contains("\u{1B}[?1049l") && !terminal.text.contains("\u{1B}[r") && terminal.modes == modes)
    }
  }

  // The backtracer cannot cope with the sanitizer's memory.
  @Test("the terminal is restored before the toolchain's backtracer prints", .disabled(if: isSanitizedForThreads))
  func backtracer() throws {
    let terminal = try PseudoTerminal(columns: 200)
    let modes = terminal.modes
    try terminal.start(["trap"], environment: ["SWIFT_BACKTRACE": "enable=yes,interactive=no,color=no"])
    #expect(terminal.expect("frame") != nil)
    terminal.type("e")
    #expect(terminal.end() < 0)
    let after = try #require(terminal.text.components(separatedBy: leaving).last)
    #expect(after.contains("the trap that the test wants"))
    #expect(after.contains("Crash") || after.contains("crashed"), "\(after)")
    #expect(!terminal.text.components(separatedBy: leaving)[0].contains("rash"))
    #expect(terminal.modes == modes)
  }

  @Test("the terminal is restored even if its window reads nothing")
  func stalled() throws {
    let terminal = try PseudoTerminal(columns: 500, rows: 200)
    let modes = terminal.modes
    try terminal.start(["flood"])
    terminal.note("open")
    // More than the system buffers.
    terminal.resize(columns: 499, rows: 199)
    terminal.note("resize")
    terminal.send(SIGTERM)
    var status: Int32 = 0
    #expect(waitpid(terminal.process, &status, 0) == terminal.process)
    #expect(status == SIGTERM)
    #expect(terminal.modes == modes)
  }

  @Test(
    "the terminal is restored before the backtracer prints, also for a signal", .disabled(if: isSanitizedForThreads),
    arguments: ["abort", "quit"])
  func backtracerOfSignals(_ how: String) throws {
    let terminal = try PseudoTerminal(columns: 200)
    let modes = terminal.modes
    try terminal.start([how], environment: ["SWIFT_BACKTRACE": "enable=yes,interactive=no,color=no"])
    #expect(terminal.expect("frame") != nil)
    if how == "abort" { terminal.type("e") }
    #expect(terminal.end(by: how == "quit" ? SIGQUIT : nil) == (how == "quit" ? -SIGQUIT : -SIGABRT))
    let parts = terminal.text.components(separatedBy: leaving)
    #expect(parts.count == 2)
    #expect(parts.last?.contains("Thread 0") ?? false, "\(parts.last ?? "")")
    #expect(!parts[0].contains("rash"))
    #expect(terminal.modes == modes)
  }

  @Test("the last part of a long log is shown after the terminal is restored, with the reason for the end")
  func longLog() throws {
    let terminal = try PseudoTerminal()
    try terminal.start(["log"])
    #expect(terminal.expect("frame") != nil)
    terminal.type("e")
    #expect(terminal.end() < 0)
    let after = try #require(terminal.text.components(separatedBy: leaving).last)
    #expect(after.contains("line 2999 ") && after.contains("the reason"), "\(after.suffix(200))")
    #expect(after.hasPrefix("(what was written before was too much to keep)") && !after.contains("line 1000 "))
    #expect((1 << 20)..<(5 << 18) ~= after.utf8.count)
  }

  @Test("a log of any length takes little memory while no frame is shown")
  func unshownLog() throws {
    let terminal = try PseudoTerminal()
    try terminal.start(["endless log"])
    #expect(terminal.expect("frame") != nil)
    terminal.type("e")
    let held = try #require(terminal.note("held")?.split(separator: " ").compactMap { Int($0) })
    try #require(held.count == 2)
    // One page, which may be a large one; the file is emptied after 32 MiB.
    #expect(held[0] <= 2048 && held[1] <= 33, "\(held[0]) KiB in a file of \(held[1]) MiB")
    terminal.type("q")
    #expect(terminal.end() == 0)
    let after = try #require(terminal.text.components(separatedBy: leaving).last)
    #expect(after.hasPrefix("(what was written before was too much to keep)") && after.contains("chunk 159 "))
    #expect((1 << 20)..<(5 << 18) ~= after.utf8.count && !after.contains("\0"))
  }

  @Test("child processes can open /dev/stderr to truncate or append while the terminal is taken")
  func children() throws {
    let terminal = try PseudoTerminal()
    try terminal.start(["children"])
    #expect(terminal.expect("frame") != nil)
    terminal.type("e")
    for _ in 0..<6 { #expect(terminal.note("child ") == "child 0") }
    #expect(terminal.note("children") != nil)
    terminal.type("q")
    #expect(terminal.end() == 0)
    let lines = [
      "written before", "created", "renewed", "appended", "copied", "created as output", "inherited", "after",
    ]
    #expect(
      terminal.text.hasSuffix(leaving + lines.map { $0 + "\r\n" }.joined()), "\(terminal.text.debugDescription)")
  }

  @Test("a program's own handler for faults and other signals still handles those other signals")
  func ownHandler() throws {
    let terminal = try PseudoTerminal()
    try terminal.start(["own handler"])
    #expect(terminal.expect("frame") != nil)
    for signal in [SIGUSR1, SIGHUP] {
      terminal.send(signal)
      // The thread sanitizer delivers the signal when the program calls a function.
      terminal.type("x")
      #expect(terminal.note("handled") != nil)
    }
    terminal.type("q")
    #expect(terminal.end() == 0)
    #expect(terminal.text.components(separatedBy: leaving).count == 2)
  }

  @Test("late replies after the program's end are not input of the next program", arguments: ["return", "signal"])
  func lateAnswers(_ how: String) throws {
    let terminal = try PseudoTerminal()
    let descriptor = open(terminal.path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
    defer { close(descriptor) }
    try terminal.start(["return"])
    #expect(terminal.expect("frame") != nil)
    if how == "signal" { terminal.send(SIGTERM) } else { terminal.type("q") }
    #expect(terminal.expect(leaving) != nil)
    terminal.type("\u{1B}[?2026;2$y\u{1B}P>|XTerm(380)\u{1B}\\\u{1B}[?62;22c")
    #expect(terminal.end() == (how == "signal" ? -SIGTERM : 0))
    var bytes = [UInt8](repeating: 0, count: 100)
    #expect(read(descriptor, &bytes, 100) == -1 && errno == EAGAIN)
    #expect(!terminal.text.contains("^["))
  }

  @Test("output of other programs during the session is shown after the terminal is restored")
  func errors() throws {
    let terminal = try PseudoTerminal()
    try terminal.start(["errors"])
    #expect(terminal.expect("frame") != nil)
    terminal.type("eq")
    #expect(terminal.end() == 0)
    #expect(
      terminal.text.hasSuffix(leaving + "written meanwhile\r\nand more\r\nprinted\r\nafter\r\n"),
      "\(terminal.text.debugDescription)")
  }

  @Test("the terminal is restored while Ctrl-Z, SIGTSTP or SIGSTOP stops the process, and taken again afterwards")
  func stops() throws {
    let terminal = try PseudoTerminal()
    let modes = terminal.modes
    try terminal.start(["shell", "return"])
    let process = try #require(terminal.note("process").flatMap { pid_t($0.dropFirst(8)) })
    terminal.note("open")
    #expect(terminal.expect("frame") != nil)
    for way in ["key", "signal"] {
      if way == "key" { terminal.type("\u{1A}") } else { kill(process, SIGTSTP) }
      #expect(terminal.note("suspend") != nil)
      #expect(terminal.note("stopped") == "stopped by \(SIGTSTP), cooked")
      #expect(terminal.expect(leaving) != nil)
      #expect(terminal.modes == modes)
      terminal.proceed()
      #expect(terminal.note("resume") != nil)
      #expect(terminal.expect("\u{1B}[?1049h") != nil)
      #expect(terminal.expect("frame return") != nil)
      #expect(terminal.modes != modes)
    }
    kill(process, SIGSTOP)
    #expect(terminal.note("stopped") == "stopped by \(SIGSTOP), raw")
    terminal.proceed()
    #expect(terminal.note("resume") != nil)
    #expect(terminal.expect("\u{1B}[?1049h") != nil)
    #expect(terminal.expect("frame return") != nil)
    terminal.type("q")
    #expect(terminal.note("status") == "status 0")
    #expect(terminal.end() == 0)
    #expect(terminal.modes == modes)
  }

  @Test("the terminal is taken again at once if no other process could continue this one")
  func orphan() throws {
    let terminal = try PseudoTerminal()
    try terminal.start(["return"])
    #expect(terminal.expect("frame") != nil)
    terminal.type("\u{1A}")
    #expect(terminal.note("suspend") != nil)
    #expect(terminal.note("resume") != nil)
    #expect(terminal.expect(leaving) != nil)
    #expect(terminal.expect("frame return") != nil)
    terminal.type("q")
    #expect(terminal.end() == 0)
  }

  @Test("something that is no terminal, or a dumb one, is an error of one sentence without escapes")
  func rejections() throws {
    let dumb = try PseudoTerminal()
    try dumb.start(["return"], environment: ["TERM": "dumb"])
    #expect(dumb.end() == 2)
    #expect(dumb.text == "The terminal cannot show a screen: the variable TERM is \"dumb\".\r\n")
  }
}
