// SPDX-License-Identifier: Apache-2.0

import CRunLoopTerminal
import Foundation
import Glibc
import TestSupport

/// A pseudo-terminal seen from the window's side, and a program that may run in it.
final class PseudoTerminal {
  let window: Int32
  /// The path of the program's end.
  let path: String
  private(set) var process: pid_t = 0
  /// Text that the window read and nothing has consumed yet.
  private(set) var text = ""
  private var notes: Int32 = -1
  private var noted = ""
  private var commands: Int32 = -1
  private var isOpen = true

  init(columns: Int = 80, rows: Int = 24) throws {
    var name = [CChar](repeating: 0, count: 64)
    window = crl_terminal_make(&name, name.count)
    guard window >= 0 else { throw POSIXError(.init(rawValue: -window) ?? .EIO) }
    path = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    resize(columns: columns, rows: rows)
  }

  deinit {
    if process > 0 {
      kill(process, SIGKILL)
      var status: Int32 = 0
      waitpid(process, &status, 0)
    }
    hangUp()
    for descriptor in [notes, commands] where descriptor >= 0 { close(descriptor) }
  }

  func resize(columns: Int, rows: Int) { crl_terminal_set_size(window, Int32(columns), Int32(rows)) }

  func hangUp() {
    guard isOpen else { return }
    isOpen = false
    close(window)
  }

  func type(_ text: String) {
    let bytes = Array(text.utf8)
    _ = bytes.withUnsafeBytes { write(window, $0.baseAddress, $0.count) }
  }

  /// The terminal's modes, as returned by `tcgetattr`.
  var modes: String {
    var modes = termios()
    tcgetattr(window, &modes)
    return "\(modes.c_iflag) \(modes.c_oflag) \(modes.c_cflag) \(modes.c_lflag)"
  }

  // MARK: Programs

  /// Starts the test program in its own session, with this as its terminal.
  func start(_ arguments: [String], environment: [String: String] = [:]) throws {
    var program = Bundle.main.bundleURL.appendingPathComponent("terminal-ends").path
    if !FileManager.default.isExecutableFile(atPath: program) {
      program =
        URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appendingPathComponent("terminal-ends").path
    }
    var out: [Int32] = [-1, -1]
    var into: [Int32] = [-1, -1]
    // Closed on exec from the start, so that programs started by other tests do not inherit them.
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, type, 0, &out) == 0, socketpair(AF_UNIX, type, 0, &into) == 0 else {
      throw POSIXError(.EMFILE)
    }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_addopen(&actions, 0, path, O_RDWR, 0)
    posix_spawn_file_actions_adddup2(&actions, 0, 1)
    posix_spawn_file_actions_adddup2(&actions, 0, 2)
    // Duplicated to high numbers first, so that neither is overwritten by the other's final number.
    let high = (fcntl(out[1], F_DUPFD_CLOEXEC, 100), fcntl(into[0], F_DUPFD_CLOEXEC, 100))
    posix_spawn_file_actions_adddup2(&actions, high.0, 3)
    posix_spawn_file_actions_adddup2(&actions, high.1, 4)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    // Programs that a shell starts in the background ignore the interrupt keys, and those under nohup ignore SIGHUP.
    var all = sigset_t()
    sigfillset(&all)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setflags(&attributes, Int16(0x80 | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    var values = ProcessInfo.processInfo.environment
    values["TERM"] = "xterm-256color"
    values["SWIFT_BACKTRACE"] = "enable=no"
    values["NO_COLOR"] = nil
    // Faults go to the program and not to the sanitizer.
    let faults = "handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigill=0:handle_sigfpe=0:handle_sigtrap=0"
    values["TSAN_OPTIONS"] = (values["TSAN_OPTIONS"].map { $0 + ":" } ?? "") + faults
    values.merge(environment) { $1 }
    let words = ([program] + arguments).map { strdup($0) } + [nil]
    let variables = values.map { strdup("\($0)=\($1)") } + [nil]
    let answer = posix_spawn(&process, program, &actions, &attributes, words, variables)
    for word in words + variables { free(word) }
    for descriptor in [out[1], into[0], high.0, high.1] { close(descriptor) }
    notes = out[0]
    commands = into[1]
    guard answer == 0 else { throw POSIXError(.init(rawValue: answer) ?? .EIO) }
  }

  func send(_ signal: Int32) { kill(process, signal) }

  /// Lets the shell continue the program.
  func proceed() {
    var byte: UInt8 = 1
    write(commands, &byte, 1)
  }

  /// Waits for the program's end, and returns its status or the negated number of the signal that ended it.
  ///
  /// Sends `signal` first. The thread sanitizer holds it until the program next calls a function that it intercepts,
  /// which a sleeping thread does not; so it is sent repeatedly there.
  func end(by signal: Int32? = nil) -> Int32 {
    var status: Int32 = 0
    let deadline = Date(timeIntervalSinceNow: 600)
    if let signal { send(signal) }
    var reads = 0
    while waitpid(process, &status, WNOHANG) == 0 {
      // The window reads meanwhile, since the program's last output may need the room.
      read(from: window, to: &text, milliseconds: 10)
      reads += 1
      if let signal, isSanitizedForThreads, reads.isMultiple(of: 100) { send(signal) }
      if Date() > deadline { return -999 }
    }
    process = 0
    while read(from: window, to: &text, milliseconds: 0) {}
    return status & 0x7F == 0 ? status >> 8 & 0xFF : -(status & 0x7F)
  }

  // MARK: Reading

  /// Reads the program's output until it contains a text, and returns everything up to the end of that text.
  @discardableResult
  func expect(_ wanted: String) -> String? {
    wait({ self.text.range(of: wanted) }) { self.read(from: self.window, to: &self.text, milliseconds: 100) }.map {
      range in
      defer { text = String(text[range.upperBound...]) }
      return String(text[..<range.upperBound])
    }
  }

  func readAll() { while read(from: window, to: &text, milliseconds: 100) {} }

  /// Waits for a line that the program reports, and drops earlier ones; reads the window's output meanwhile if `reads`.
  @discardableResult
  func note(_ wanted: String, reads: Bool = false) -> String? {
    wait({ self.noted.range(of: wanted) }) {
      if reads { self.read(from: self.window, to: &self.text, milliseconds: 1) }
      self.read(from: self.notes, to: &self.noted, milliseconds: reads ? 0 : 100)
    }.map {
      range in
      let end = noted[range.upperBound...].firstIndex(of: "\n") ?? noted.endIndex
      defer { noted = String(noted[end...]) }
      return String(noted[range.lowerBound..<end])
    }
  }

  private func wait<T>(_ found: () -> T?, _ more: () -> Void) -> T? {
    let deadline = Date(timeIntervalSinceNow: 600)
    while Date() < deadline {
      if let found = found() { return found }
      more()
    }
    return nil
  }

  @discardableResult
  private func read(from descriptor: Int32, to text: inout String, milliseconds: Int32) -> Bool {
    var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&ready, 1, milliseconds) > 0 else { return false }
    var buffer = [UInt8](repeating: 0, count: 65536)
    let count = Glibc.read(descriptor, &buffer, buffer.count)
    guard count > 0 else {
      // End of file.
      usleep(UInt32(milliseconds) * 1000)
      return false
    }
    text += String(decoding: buffer[..<count], as: UTF8.self)
    return true
  }
}
