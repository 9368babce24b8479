// SPDX-License-Identifier: Apache-2.0

import TestSupport
import CRunLoopAgent
import CRunLoopRecorder
import Foundation
import Glibc
import RunLoopInstruments
import Testing

@Suite("The agent", .ownThread) struct AgentTests {
  private static let reasons = #"{"request": "reasons"}"#

  private func victim(_ arguments: String..., level: String = "watch") throws -> Victim {
    try Victim(arguments, program: "kept-victim", level: level)
  }

  private func socketPath(_ victim: Victim) throws -> String {
    try #require(victim.file).replacingOccurrences(of: "/rings", with: "/agent")
  }

  @Test("the agent's socket and its directory belong to the user alone")
  func modes() throws {
    let victim = try victim("resident")
    var status = stat()
    #expect(lstat(try socketPath(victim), &status) == 0)
    #expect(status.st_mode & S_IFMT == S_IFSOCK)
    #expect(status.st_mode & 0o777 == 0o600)
    #expect(lstat(try #require(victim.file).replacingOccurrences(of: "/rings", with: ""), &status) == 0)
    #expect(status.st_mode & 0o777 == 0o700)
    #expect(status.st_uid == geteuid())
  }

  @Test(
    "a peer that sends malformed requests gets an error or end of file, and the next peer is served",
    arguments: [
      "", "x", "{", "{}", "[]", "null", "{\"request\"", "{\"request\": 7}", "{\"request\": \"format\"}",
      "{\"request\": \"hold\", \"level\": 9}", "{\"request\": \"hold\"}", "\u{0}\u{1}", "{\"request\": \"\\ud800\"}",
      String(repeating: "[", count: 100_000), String(repeating: "a", count: 1 << 20),
    ])
  func badRequests(request: String) throws {
    let victim = try victim("resident")
    let socket = try AgentSocket(victim)
    let frames = socket.answer(request)
    if request.isEmpty {
      #expect(frames.isEmpty)
    } else {
      #expect(frames.count == 1)
      #expect(frames.first?["error"]?.text?.isEmpty == false)
    }
    #expect(try AgentSocket(victim).answer(Self.reasons).last?["end"] == .bool(true))
  }

  @Test("an excessive length or a truncated frame ends only that conversation")
  func badFrames() throws {
    let victim = try victim("resident")
    for length in [UInt32(1 << 20) + 1, .max] {
      let socket = try AgentSocket(victim)
      socket.sendFrame("x", length: length)
      #expect(socket.frame() == nil)
    }
    let random = (0..<4096).map { _ in UInt8.random(in: 0...255) }
    let half = try AgentSocket(victim)
    half.sendFrame("{\"request\"", length: 100)
    let noise = try AgentSocket(victim)
    noise.send(random)
    // Both are still connected, but do not keep the agent from responding.
    #expect(try AgentSocket(victim).answer(Self.reasons).last?["end"] == .bool(true))
    withExtendedLifetime((half, noise)) {}
  }

  @Test("two tools are served at once, and a third one receives an error")
  func manyPeers() throws {
    let victim = try victim("resident")
    let sockets = try (0..<Int(CRLA_CONNECTIONS)).map { _ in try AgentSocket(victim) }
    for socket in sockets { #expect(socket.answer(Self.reasons).count == 2) }
    #expect(try AgentSocket(victim).frame()?["error"] != nil)
    // Killing one makes room for another.
    shutdown(sockets[0].number, Int32(SHUT_RDWR))
    var answer: [AgentDocument] = []
    while answer.count != 2 { answer = try AgentSocket(victim).answer(Self.reasons) }
    #expect(answer.last?["end"] == .bool(true))
  }

  @Test("a tool that disconnects at any point leaves no descriptor, thread or level behind")
  func nothingIsLeft() throws {
    let victim = try victim("resident", level: "off")
    func count(_ folder: String) throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/\(victim.number)/\(folder)").count
    }
    let before = try (count("fd"), count("task"))
    for turn in 0..<50 {
      let socket = try AgentSocket(victim)
      socket.sendFrame("{\"request\": \"hold\", \"level\": 2}")
      if turn % 2 == 0 { _ = socket.frame() }
      socket.sendFrame(Self.reasons)
      socket.sendFrame("{\"request\"", length: 1000)
    }
    // Their threads end on their own.
    while try count("fd") != before.0 || count("task") != before.1 { usleep(1000) }
    while try runloop("ps", "\(victim.number)", "--json").json()["level"] as? String != "off" { usleep(1000) }
  }

  @Test("an instrument level is held as long as the tool is connected")
  func level() throws {
    let victim = try victim("resident", level: "off")
    func level() throws -> String? { try runloop("ps", "\(victim.number)", "--json").json()["level"] as? String }
    let socket = try AgentSocket(victim)
    #expect(socket.answer("{\"request\": \"hold\", \"level\": 2}").last?["end"] == .bool(true))
    #expect(try level() == "record")
    #expect(socket.answer("{\"request\": \"hold\", \"level\": 1}").last?["end"] == .bool(true))
    #expect(try level() == "watch")
    shutdown(socket.number, Int32(SHUT_RDWR))
    while try level() != "off" { usleep(1000) }
  }

  @Test("a peer of the same user can be allowed to read memory while it holds a level")
  func permission() throws {
    let victim = try victim("resident")
    let permit = "{\"request\": \"permit\"}"
    func hold(_ level: Int) -> String { "{\"request\": \"hold\", \"level\": \(level)}" }
    let socket = try AgentSocket(victim)
    #expect(socket.answer(permit).last?["error"]?.text?.contains("holds no level") == true)
    #expect(socket.answer(hold(1)).last?["end"] == .bool(true))
    #expect(socket.answer(permit).last?["end"] == .bool(true))
    #expect(socket.answer(hold(0)).last?["end"] == .bool(true))
    #expect(socket.answer(permit).last?["error"] != nil)
  }

  @Test("a forked child responds for itself, and its parent still responds")
  func fork() throws {
    let victim = try Victim(["fork"], program: "kept-victim", level: "watch", waits: false)
    let child = try #require(Int32(try victim.line()))
    defer { kill(child, SIGKILL) }
    _ = try victim.line(containing: "ready")
    for number in [victim.number, child] {
      let session = runloop("why-alive", "\(number)", "--json")
      #expect(session.status == 0, "\(session.complaints)")
      let loops = try #require(try session.json()["loops"] as? [[String: Any]])
      #expect(loops.contains { ($0["thread"] as? String)?.hasPrefix("resident") == true })
    }
    // The child continues without its parent. No wait is needed, since the child exists already.
    kill(victim.number, SIGKILL)
    let session = runloop("why-alive", "\(child)")
    #expect(session.status == 0, "\(session.complaints)")
  }

  @Test("after exec, the new program responds at the same address")
  func exec() throws {
    let victim = try victim("exec")
    let session = runloop("why-alive", "\(victim.number)", "--json")
    #expect(session.status == 0, "\(session.complaints)")
  }

  @Test("an exiting process removes its socket, and the end of a killed one is reported in one sentence")
  func exit() throws {
    let directory = try Victim.makeDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try Victim(["exit"], program: "kept-victim", level: "watch", directory: directory).waitForExit()
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
    let victim = try victim("resident")
    victim.kill()
    let session = runloop("why-alive", "\(victim.number)")
    #expect(session.status == 1)
    #expect(session.complaints.count == 1)
  }

  @Test(
    "a call listens in another directory, which the tool finds by its own variable; one that others can write to is none"
  )
  func listens() async {
    // Needs its own process, as the environment variable affects the whole process and its children.
    await #expect(processExitsWith: .success) {
      let other = try Victim.makeDirectory()
      defer { try? FileManager.default.removeItem(atPath: other) }
      let victim = try Victim(["listens", other], program: "kept-victim", level: "off", hasDirectory: false)
      setenv("RUNLOOP_DIR", other, 1)
      let session = runloop("why-alive", "\(victim.number)", "--json")
      #expect(session.status == 0, "\(session.complaints)")
      victim.kill()

      chmod(other, 0o777)
      let second = try Victim(
        ["listens", other], program: "kept-victim", level: "off", hasDirectory: false, waits: false)
      #expect(try second.line().contains("others cannot write to"))
    }
  }

  @Test("a process that cannot be asked is reported in one sentence, with status 1")
  func refusals() throws {
    func complaint(_ number: Int32) -> String {
      var found = ""
      for command in ["why-alive", "dump"] {
        let session = runloop(command, "\(number)", "--json")
        #expect(session.status == 1)
        #expect(session.output.isEmpty)
        #expect(session.complaints.count == 1)
        found = session.complaints.first ?? ""
      }
      return found
    }
    #expect(complaint(.max).contains("there is no process"))
    let loopless = try victim("none")
    #expect(complaint(loopless.number).contains("has no run loop"))
    let agentless = try Victim(["idle"])
    let hasYama = access("/proc/sys/kernel/yama", F_OK) == 0
    #expect(complaint(agentless.number).contains("ptrace_scope") == hasYama)
    let stopped = try victim("resident")
    kill(stopped.number, SIGSTOP)
    defer { kill(stopped.number, SIGCONT) }
    #expect(complaint(stopped.number).contains("stopped"))
    #expect(runloop("why-alive").status == 2)
    #expect(runloop("why-alive", "x").status == 2)
  }

  @Test("an agent with another layout is reported in one sentence")
  func otherLayout() throws {
    let victim = try victim("resident")
    let path = try #require(victim.file)
    let file = try #require(FileHandle(forUpdatingAtPath: path))
    try file.seek(toOffset: 8)
    file.write(Data([UInt8(CRL_LAYOUT_VERSION + 1)]))
    let session = runloop("why-alive", "\(victim.number)")
    #expect(session.status == 1)
    #expect(session.complaints.count == 1)
    #expect(session.complaints.first?.contains("layout \(CRL_LAYOUT_VERSION + 1)") == true)
  }

  @Test("another user's process is reported in one sentence, and its agent is silent", .enabled(if: geteuid() == 0))
  func otherUser() throws {
    let victim = try victim("resident")
    // A peer that dropped root privileges; its access to the victim is limited to the connection.
    let program = "/usr/bin/python3"
    try #require(access(program, X_OK) == 0)
    let path = try socketPath(victim)
    chmod(path, 0o777)
    chmod(path.replacingOccurrences(of: "/agent", with: ""), 0o755)
    chmod(victim.directory, 0o755)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = [
      "-c",
      """
      import os, socket, sys
      os.setuid(65534)
      s = socket.socket(socket.AF_UNIX)
      s.settimeout(60)
      s.connect(sys.argv[1])
      try:
        s.sendall(b'\\x16\\0\\0\\0{"request": "reasons"}')
        sys.exit(3 if s.recv(1) else 0)
      except (BrokenPipeError, ConnectionResetError):
        sys.exit(0)
      """, path,
    ]
    try process.start()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
  }
}
