// SPDX-License-Identifier: Apache-2.0

import TestSupport
import CRunLoopRecorder
import CRunLoopSystem
import Foundation
import RunLoopToolKit
import Testing

private final class Tool {
  let number: pid_t
  private var hasEnded = false
  /// Reaches its end once the tool and all its children have closed the other end.
  private let reader: Int32

  init(_ arguments: [String]) throws {
    let path = Victim.program(named: "runloop").path
    var ends: [Int32] = [0, 0]
    try #require(crl_pipe(&ends) == 0)
    defer { close(ends[1]) }
    reader = ends[0]
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for descriptor in [STDOUT_FILENO, STDERR_FILENO] {
      posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_WRONLY, 0)
    }
    posix_spawn_file_actions_adddup2(&actions, ends[1], 3)
    // Dispatch threads block all signals, and a program inherits the blocked signals of the thread that starts it.
    var none = sigset_t()
    sigemptyset(&none)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    posix_spawnattr_setsigmask(&attributes, &none)
    // Programs that a shell starts in the background ignore the interrupt keys, and so would the tool.
    var all = sigset_t()
    sigfillset(&all)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    var words = ([path] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var child: pid_t = 0
    guard posix_spawn(&child, path, &actions, &attributes, &words, environ) == 0 else {
      throw VictimError(text: "\(path) cannot be started")
    }
    number = child
  }

  deinit {
    if isRunning { try? end(by: SIGKILL) }
    close(reader)
  }

  /// Whether the tool and all its children have ended.
  var isGone: Bool {
    var ready = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
    return poll(&ready, 1, 60_000) == 1 && ready.revents & Int16(POLLHUP) != 0
  }

  var isRunning: Bool {
    var status: Int32 = 0
    if !hasEnded, waitpid(number, &status, WNOHANG) == number { hasEnded = true }
    return !hasEnded
  }

  /// Ends it with a signal.
  ///
  /// If the tool does not end, reports what the kernel knows of it, and kills it.
  func end(by signal: Int32) throws {
    kill(number, signal)
    for _ in 0..<Tool.patience where isRunning { usleep(10_000) }
    guard isRunning else { return }
    let evidence = evidence
    kill(number, SIGKILL)
    while isRunning { usleep(1000) }
    throw VictimError(text: "signal \(signal) did not end the tool:\n\(evidence)")
  }

  /// In hundredths of a second; naming the code of a hang takes at most a minute.
  private static let patience = 12_000

  /// The kernel's view of its signals, and of where its threads are.
  private var evidence: String {
    let own = "/proc/\(number)"
    let threads = (try? FileManager.default.contentsOfDirectory(atPath: "\(own)/task")) ?? []
    let files = ["\(own)/status"] + threads.flatMap { ["\(own)/task/\($0)/wchan", "\(own)/task/\($0)/syscall"] }
    return files.map { path in
      let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? "?"
      let lines = text.split(separator: "\n").filter { path.hasSuffix("status") ? Tool.isTelling($0) : true }
      return "\(path): \(lines.joined(separator: ", "))"
    }.joined(separator: "\n")
  }

  private static func isTelling(_ line: Substring) -> Bool {
    ["State:", "SigPnd:", "ShdPnd:", "SigBlk:", "SigIgn:", "SigCgt:", "Threads:"].contains { line.hasPrefix($0) }
  }
}

private func level(of victim: Victim) throws -> UInt32 {
  try TargetProcess(victim.number).openRecords().header.level
}

/// Starts the tool until it holds the level, repeatedly because `ps` does so for only a quarter of a second.
private func holding(_ victim: Victim, _ arguments: [String]) throws -> Tool {
  for _ in 0..<200 {
    let tool = try Tool(arguments)
    while tool.isRunning {
      if try level(of: victim) == 2 { return tool }
      usleep(1000)
    }
  }
  throw VictimError(text: "\(arguments) never held the level of the process")
}

@Suite("A tool's hold on a process's level", .ownThread) struct LevelHoldTests {
  @Test(
    "a signal that ends the tool restores the process's level",
    arguments: ["ps", "hangs", "trace"], [SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT])
  func signals(command: String, signal: Int32) throws {
    let victim = try Victim(["hang"], level: "off")
    let output = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).html").path
    defer { try? FileManager.default.removeItem(atPath: output) }
    let more = ["ps": [], "hangs": ["--follow"], "trace": ["--for", "600", "--output", output]]
    let tool = try holding(victim, [command, "\(victim.number)"] + (more[command] ?? []))
    defer { unlink("\(output).\(tool.number).part") }
    try tool.end(by: signal)
    #expect(try level(of: victim) == 0)
    #expect(tool.isGone)
  }

  @Test("a signal restores the level also in the memory of a process without a file")
  func memory() throws {
    let victim = try Victim(["hang"], level: "off", directory: "/nonexistent/records")
    let tool = try holding(victim, ["hangs", "\(victim.number)", "--follow"])
    try tool.end(by: SIGQUIT)
    #expect(try level(of: victim) == 0)
  }

  @Test("a process drops the level of a killed tool while its loops continue")
  func killed() throws {
    let victim = try Victim(["wakes"], level: "off")
    let tool = try holding(victim, ["hangs", "\(victim.number)", "--follow"])
    try tool.end(by: SIGKILL)
    while try level(of: victim) != 0 { usleep(1000) }
  }

  @Test("the places of ended holders are freed, and other holders keep theirs")
  func ended() throws {
    let gone = Process()
    gone.executableURL = URL(fileURLWithPath: "/bin/true")
    try gone.start()
    gone.waitUntilExit()
    let own = try #require(TargetProcess.start(of: getpid()))
    var header = crl_header()
    func set(_ index: Int, _ process: Int32, _ start: UInt64) {
      withUnsafeMutableBytes(of: &header.holders) {
        $0.bindMemory(to: crl_holder.self)[index] = crl_holder(process: process, level: 2, start: start)
      }
    }
    set(0, getpid(), own)
    set(1, gone.processIdentifier, 5)
    // Its number was given to another process.
    set(2, getpid(), own + 1)
    // It is being taken.
    set(3, getpid(), 0)
    set(4, gone.processIdentifier, 0)
    // Its number belongs to another namespace.
    set(5, -gone.processIdentifier, 5)
    func kept() -> [Int] {
      withUnsafeBytes(of: header.holders) { bytes in
        bytes.bindMemory(to: crl_holder.self).indices.filter {
          bytes.bindMemory(to: crl_holder.self)[$0].process != 0
        }
      }
    }
    #expect(crl_holders_drop_ended(&header, 0) == 1)
    #expect(kept() == [0, 3, 5])
    #expect(crl_holders_drop_ended(&header, 0) == 0)
    #expect(crl_holders_drop_ended(&header, 1) == 1)
    #expect(kept() == [0, 3])
    #expect(crl_holder_free(withUnsafeMutablePointer(to: &header) { holder(in: $0, 3) }, getpid()) == 1)
    #expect(kept() == [0])
  }

  private func holder(in header: UnsafeMutablePointer<crl_header>, _ index: Int) -> UnsafeMutablePointer<crl_holder> {
    let place = UnsafeMutableRawPointer(header) + (MemoryLayout<crl_header>.offset(of: \.holders) ?? 0)
    return place.assumingMemoryBound(to: crl_holder.self) + index
  }
}
