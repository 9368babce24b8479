// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopSystemEvents
import Testing
import TestSupport

@testable import RunLoopSockets

/// A server that responds before it has read everything, and resets the connection.
private let resettingServer = """
  import socket, struct, sys
  listener = socket.create_server(("127.0.0.1", 0))
  print(listener.getsockname()[1], flush=True)
  while True:
      connection, _ = listener.accept()
      connection.recv(1000)
      connection.sendall(b"413 too large")
      connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
      if sys.argv[1] == "reset":
          connection.close()
      else:
          connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
          connection.close()
  """

@Suite(
  "Sockets with a server in Python", .timeLimit(.minutes(20)),
  .enabled(if: access("/usr/bin/env", X_OK) == 0 && system("python3 -c '' 2>/dev/null") == 0, "python3 is missing"))
struct PythonPeerTests {
  /// Runs a body with the address of the server.
  private func beside(_ way: String, _ body: (SocketAddress) async throws -> Void) async throws {
    var options = SpawnedProcess.Options()
    options.standardOutput = .pipe
    let server = try SpawnedProcess("python3", ["-c", resettingServer, way], options: options)
    defer {
      try? server.send(signal: SIGKILL)
      waitpid(server.process, nil, 0)
    }
    let serving = SocketThread()
    defer { serving.stop() }
    let output = try #require(server.standardOutput)
    try output.schedule(in: serving.loop, forMode: .default)
    output.open()
    var port: UInt16?
    for try await line in output.lines() {
      port = UInt16(line)
      break
    }
    output.close()
    try await body(.loopback(port: try #require(port)))
  }

  @Test("a loop waits quietly for a child that has ended and whose status a debugger still has")
  func debugger() throws {
    let script = """
      import ctypes, os, sys
      child = int(sys.argv[1])
      PTRACE_SEIZE = 0x4206
      print(ctypes.CDLL(None).ptrace(PTRACE_SEIZE, child, None, None), flush=True)
      os.kill(child, 9)
      os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
      print("ended", flush=True)
      sys.stdin.readline()
      """
    let child = try SpawnedProcess("sleep", ["1000"])
    var options = SpawnedProcess.Options()
    options.standardInput = .pipe
    options.standardOutput = .pipe
    let debugger = try SpawnedProcess("python3", ["-c", script, "\(child.process)"], options: options)
    let output = try #require(debugger.standardOutput)
    output.open()
    var text = ""
    waitUntil {
      let more = output.readText()
      if more != "nil" { text += more }
      return text.hasPrefix("-1") || text.hasSuffix("ended\n")
    }
    // The system may not permit it.
    let isTraced = text.hasPrefix("0")
    let log = onSocketLoop { loop, log in
      try loop.add(
        ChildProcessSource(child) { _, end in
          log.write("\(end)")
          loop.stop()
        }, forMode: .default)
      let passes = (0..<1000).count { _ in
        isTraced && loop.run(mode: .default, for: .zero, returnAfterSourceHandled: true) == .handledSource
      }
      if passes == 1000 { log.write("spins") }
      debugger.standardInput?.close()
      loop.runUntilStopped()
    }
    #expect(log == "ended by signal 9")
    waitpid(debugger.process, nil, 0)
  }

  @Test("a server's response is delivered before the error of its unread upload", arguments: ["reset", "unread"])
  func earlyAnswer(way: String) async throws {
    try await beside(way) { address in
      for _ in 0..<5 {
        let serving = SocketThread()
        defer { serving.stop() }
        let socket = try Socket(connectingTo: address)
        try serving.loop.add(socket, forMode: .default)
        var received: [UInt8] = []
        var failure: (any Error)?
        let upload = Task {
          while true { try await socket.send([UInt8](repeating: 0, count: 100_000)) }
        }
        do { for try await chunk in socket.chunks { received += chunk } } catch { failure = error }
        // The response is complete, unless the server's reset has dropped all of it.
        let answer = String(decoding: received, as: UTF8.self)
        #expect(answer == "413 too large" || way == "reset" && answer.isEmpty)
        // Only the first caller gets the connection's error. The other finds the socket closed.
        let errors = [failure, await upload.result.failure].compactMap { $0 as? SocketError }
        #expect(errors.count == 2 && errors.allSatisfy { $0.isReset || $0 == .invalid })
      }
    }
  }
}

extension Result {
  fileprivate var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}

extension SocketError {
  fileprivate var isReset: Bool {
    guard case .system(let error, _) = self else { return false }
    return [ECONNRESET, EPIPE].contains(error.number)
  }
}
