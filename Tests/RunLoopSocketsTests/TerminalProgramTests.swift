// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopSystemEvents
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("Programs on a terminal, byte arguments, and termination in steps", .timeLimit(.minutes(20)))
struct TerminalProgramTests {
  /// Runs a program on a terminal, writes to it, and returns the output until it ends.
  private func onTerminal(
    _ script: String, typing: String = "", _ set: @escaping @Sendable (inout SpawnedProcess.Options) -> Void = { _ in },
    whenItWrites: @escaping @Sendable (SpawnedProcess) -> Void = { _ in }
  ) -> String {
    onSocketLoop { loop, log in
      var options = SpawnedProcess.Options()
      options.standardInput = .terminal
      options.standardOutput = .terminal
      options.standardError = .terminal
      options.terminalSize = .init(columns: 101, rows: 37)
      set(&options)
      let program = try SpawnedProcess("sh", ["-c", script], options: options)
      let output = try #require(program.standardOutput)
      let bytes = Box<[UInt8]>([])
      let ends = Box(0)
      output.handler = { stream, event in
        switch event {
        case .hasBytesAvailable:
          withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { room in
            guard let count = (try? output.read(into: room)) ?? nil else { return }
            bytes.value += room[..<count]
          }
          whenItWrites(program)
        case .endEncountered, .errorOccurred:
          log.write("\(event)")
          ends.value += 1
          if ends.value == 2 { loop.stop() }
        case .openCompleted, .canAcceptBytes: break
        }
      }
      try output.schedule(in: loop, forMode: .default)
      output.open()
      if let input = program.standardInput, !typing.isEmpty {
        input.handler = { _, event in
          guard case .canAcceptBytes = event, bytes.value.count >= 0 else { return }
          input.handler = nil
          _ = Array(typing.utf8).withUnsafeBytes { try? input.write($0) }
        }
        try input.schedule(in: loop, forMode: .default)
        input.open()
      }
      let source = ChildProcessSource(program) { _, end in
        log.write("\(end)")
        ends.value += 1
        if ends.value == 2 { loop.stop() }
      }
      try loop.add(source, forMode: .default)
      loop.runUntilStopped()
      output.close()
      program.standardInput?.close()
      log.write(String(decoding: bytes.value, as: UTF8.self).split { $0.isNewline }.joined(separator: "|"))
    }
  }

  @Test("a program's streams can be its own terminal of a given size, and its end is reported")
  func terminal() {
    let log = onTerminal("test -t 0 && test -t 1 && test -t 2 && stty size && ps -o tty= -p $$ | grep -c pts")
    #expect(log.hasSuffix("37 101|1"))
    #expect(log.contains("endEncountered") && log.contains("exited with 0"))
  }

  @Test("typed input reaches the program, and control-C is a signal")
  func typing() {
    let log = onTerminal("stty -echo; read line; echo got $line", typing: "hello\n")
    #expect(log.hasSuffix("got hello"))
    // Only once: the terminal's echo is output too, and control-C drops output that was not read yet.
    let isTyped = Box(false)
    let interrupted = onTerminal("trap 'echo stopped; exit 3' INT; echo ready; while :; do sleep 0.01; done") { _ in
    } whenItWrites: { program in
      guard !isTyped.value else { return }
      isTyped.value = true
      program.standardInput?.open()
      _ = [UInt8(3)].withUnsafeBytes { try? program.standardInput?.write($0) }
    }
    #expect(interrupted.contains("exited with 3") && interrupted.contains("stopped"))
  }

  @Test("a program with a terminal of its own does not ignore the signals of keys that its parent ignores")
  func ignoredSignals() async {
    await #expect(processExitsWith: .success) {
      // As nohup and the shell's & do.
      for number in [SIGHUP, SIGINT, SIGQUIT] { signal(number, SIG_IGN) }
      let script = "trap 'exit 3' INT; kill -INT $$; exit 4"
      guard TerminalProgramTests().onTerminal(script).contains("exited with 3") else { exit(2) }
      let other = try SpawnedProcess("sh", ["-c", script])
      var status: Int32 = 0
      guard waitpid(other.process, &status, 0) == other.process, status == 4 << 8 else { exit(5) }
    }
  }

  @Test("a program is notified when its terminal's size changes")
  func resizing() {
    let log = onTerminal("trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.01; done") { _ in
    } whenItWrites: { program in
      try? program.setTerminalSize(.init(columns: 10, rows: 20))
    }
    #expect(log.hasSuffix("20 10"))
  }

  @Test("only a program with a terminal has a terminal size")
  func noTerminal() async throws {
    let program = try SpawnedProcess("true")
    #expect(throws: SystemError.self) { try program.setTerminalSize(.init(columns: 1, rows: 1)) }
    waitpid(program.process, nil, 0)
  }

  @Test("a program's arguments, environment, directory and output are bytes")
  func bytes() async throws {
    let name = SpawnedProcess.Word(
      bytes: Array("/tmp/caf".utf8) + [0xe9]
        + Array(socketPath().dropFirst(4).utf8)
        .map { $0 == UInt8(ascii: "/") ? UInt8(ascii: "-") : $0 })
    let made = try await SpawnedProcess.run("mkdir", [name])
    #expect(made.isSuccess)
    var options = SpawnedProcess.Options()
    options.directoryWord = name
    options.environmentWords = ["PATH": "/usr/bin:/bin", SpawnedProcess.Word(bytes: [0xe9]): .init(bytes: [0xff])]
    let place = try await SpawnedProcess.run("pwd", [] as [SpawnedProcess.Word], options: options)
    #expect(place.output == name.bytes + [UInt8(ascii: "\n")])
    let seen = try await SpawnedProcess.run("env", [] as [SpawnedProcess.Word], options: options)
    #expect(seen.output.split(separator: UInt8(ascii: "\n")).contains([0xe9, UInt8(ascii: "="), 0xff]))
    #expect(options.environment?["PATH"] == "/usr/bin:/bin")
    #expect(try await SpawnedProcess.run("rmdir", [name]).isSuccess)
  }

  @Test("a Unix address consists of bytes, which name the socket's file")
  func socketBytes() throws {
    let path = FileChangeSource.Path(bytes: Array(socketPath().utf8) + [0xe9, 0xff])
    let address = try SocketAddress(path: path)
    #expect(address.pathBytes == path.bytes)
    func exists() -> Bool {
      (path.bytes + [0]).withUnsafeBufferPointer { bytes in
        bytes.withMemoryRebound(to: CChar.self) { $0.baseAddress.map { access($0, F_OK) == 0 } ?? false }
      }
    }
    var options = ListeningSocket.Options()
    options.fileMode = 0o600
    options.removesFile = false
    try ListeningSocket(at: address, options: options).invalidate()
    #expect(exists())
    options.removesFile = true
    options.replacesStaleFile = true
    try ListeningSocket(at: address, options: options).invalidate()
    #expect(!exists())
  }

  @Test("a program is asked to end step by step, and killed after the last step")
  func teardown() {
    let log = onSocketLoop { loop, log in
      var options = SpawnedProcess.Options()
      options.standardOutput = .pipe
      let script = "trap 'echo int' INT; trap 'echo term' TERM; echo ready; while :; do sleep 0.01; done"
      let program = try SpawnedProcess("sh", ["-c", script], options: options)
      let output = try #require(program.standardOutput)
      let hasBegun = Box(false)
      output.handler = { _, event in
        switch event {
        case .hasBytesAvailable:
          withUnsafeTemporaryAllocation(byteCount: 100, alignment: 1) { room in
            guard let count = (try? output.read(into: room)) ?? nil else { return }
            for line in String(decoding: room[..<count], as: UTF8.self).split(separator: "\n") {
              log.write(String(line))
            }
          }
          guard !hasBegun.value else { return }
          hasBegun.value = true
          let steps: [SpawnedProcess.TeardownStep] = [
            .send(signal: SIGINT, within: .milliseconds(300)), .terminate(within: .milliseconds(300)),
          ]
          _ = try? program.tearDown(by: steps, on: loop) { _ in log.write("killed") }
        default: break
        }
      }
      try output.schedule(in: loop, forMode: .default)
      output.open()
      let source = ChildProcessSource(program) { _, end in
        log.write("\(end)")
        loop.stop()
      }
      try loop.add(source, forMode: .default)
      loop.runUntilStopped()
      output.close()
    }
    #expect(log == "ready int term killed ended by signal 9")
  }

  @Test("a program that ignores the steps is killed after the last one, even if the first has no grace period")
  func killedAfterStepWithoutGrace() throws {
    let spawned = try startedDeafProgram()
    let log = onVirtualSocketLoop { loop, log in
      let begin = loop.now
      try spawned.tearDown(by: [.terminate(within: .zero), .terminate(within: .seconds(5))], on: loop) { _ in
        log.write("killed @\(loop.now - begin)")
        loop.stop()
      }
      log.write("\(loop.runUntilStopped())")
    }
    // Leaves no child behind if the test fails.
    try? spawned.send(signal: SIGKILL)
    #expect(log == "killed @5.0 seconds stopped")
    let status = try #require(reap(spawned.process))
    #expect(status & 0x7F == SIGKILL)
  }
}
