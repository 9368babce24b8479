// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import Synchronization
import Testing
import TestSupport

@testable import RunLoopSockets
@testable import RunLoopSystemEvents

@Suite("Running programs to completion", .timeLimit(.minutes(20)))
struct RunProgramTests {
  private func failure(
    _ script: String, limit: Int = 1000, deadline: Duration? = nil, leadsGroup: Bool = false
  ) async -> SpawnedProcess.RunError? {
    var options = SpawnedProcess.Options()
    options.leadsProcessGroup = leadsGroup
    do {
      _ = try await SpawnedProcess.run(
        "/bin/sh", ["-c", script], maximumOutputSize: limit, deadline: deadline, options: options)
      return nil
    } catch {
      return error as? SpawnedProcess.RunError
    }
  }

  @Test("the status, the output and the error output are returned, and the input is read")
  func completion() async throws {
    let all = try await SpawnedProcess.run("/bin/sh", ["-c", "cat; echo bad >&2; exit 3"], input: "typed\n")
    #expect(all.status == .exited(code: 3) && !all.isSuccess)
    #expect(all.outputText == "typed\n" && all.errorText == "bad\n")
    let none = try await SpawnedProcess.run("cat")
    #expect(none.isSuccess && none.output.isEmpty && none.error.isEmpty)
    var options = SpawnedProcess.Options()
    options.standardError = .standardOutput
    let one = try await SpawnedProcess.run(
      "/bin/sh", ["-c", "echo $A $PWD >&2"], directory: "/", environment: ["A": "b"], options: options)
    #expect(one.outputText == "b /\n" && one.error.isEmpty)
  }

  @Test("an argument need not be text, nor a program's path")
  func bytes() throws {
    let name = Array(socketPath().utf8) + [0xE9]
    let file = open(name.map { CChar(bitPattern: $0) } + [0], O_WRONLY | O_CREAT | O_CLOEXEC, 0o700)
    try #require(file >= 0 && write(file, "#!/bin/sh\nexec test $1 = $2", 27) == 27)
    close(file)
    defer { unlink(name.map { CChar(bitPattern: $0) } + [0]) }
    let path = FileChangeSource.Path(bytes: name)
    #expect(reap(try SpawnedProcess("test", ["-x", .init(path)]).process) == 0)
    #expect(reap(try SpawnedProcess(.init(path), [.init(bytes: [0xFF]), .init(bytes: [0xFF])]).process) == 0)
    #expect(throws: SpawnError.zeroByte("a\0b")) { try SpawnedProcess("true", [.init(bytes: [97, 0, 98])]) }
  }

  @Test("a long input passes through, and one that is not read is no error")
  func input() async throws {
    let bytes = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0) }
    let echoed = try await SpawnedProcess.run("cat", input: .bytes(bytes))
    #expect(echoed.isSuccess && echoed.output == bytes)
    #expect(try await SpawnedProcess.run("true", input: .bytes(bytes)).isSuccess)
  }

  @Test("a program that cannot be started is a thrown error")
  func cannotStart() async {
    await #expect(throws: SpawnError.notFound(program: "no-such-program")) {
      try await SpawnedProcess.run("no-such-program")
    }
  }

  @Test("more output than the limit is an error, and the program is killed")
  func tooMuch() async {
    #expect(await failure("exec cat /dev/zero") == .outputTooLarge(limit: 1000))
    #expect(await failure("exec cat /dev/zero >&2") == .outputTooLarge(limit: 1000))
    #expect(await failure("head -c 1000 /dev/zero") == nil)
    #expect(await failure("head -c 1001 /dev/zero") == .outputTooLarge(limit: 1000))
  }

  @Test("a program that exceeds its timeout is terminated, and its output is returned with the error")
  func deadline() async {
    let error = await failure("echo begun; exec sleep 1000", deadline: .milliseconds(500))
    guard case .deadlineExceeded(let completion) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(completion.status == .signalled(signal: SIGTERM, coreDumped: false) && completion.outputText == "begun\n")
  }

  @Test("a program whose termination signal does not exist is killed", arguments: [false, true])
  func signalThatDoesNotExist(leadsGroup: Bool) async {
    var options = SpawnedProcess.Options()
    options.leadsProcessGroup = leadsGroup
    let killed = SpawnedProcess.Completion(
      status: .signalled(signal: SIGKILL, coreDumped: false), output: [], error: [])
    await #expect(throws: SpawnedProcess.RunError.deadlineExceeded(killed)) {
      try await SpawnedProcess.run(
        "sleep", ["1000"], deadline: .milliseconds(1), teardown: [.send(signal: 1000, within: .seconds(1000))],
        options: options)
    }
  }

  @Test("a program's children are terminated with its group, and holding the output open delays nothing")
  func group() async {
    let error = await failure("sleep 1000 & echo $!; wait", deadline: .milliseconds(500), leadsGroup: true)
    guard case .deadlineExceeded(let completion) = error, let other = Int32(completion.outputText.dropLast()) else {
      Issue.record("\(String(describing: error))")
      return
    }
    waitUntil { hasEnded(other) }
  }

  @Test("a group is terminated after the deadline although its leader has ended")
  func groupWithoutLeader() async throws {
    let error = await failure("sleep 1000 & echo $!", deadline: .milliseconds(500), leadsGroup: true)
    guard case .deadlineExceeded(let completion) = error, let other = Int32(completion.outputText.dropLast()) else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(completion.status == .exited(code: 0))
    waitUntil { hasEnded(other) }
  }

  @Test("a cancelled task terminates the program, even before it waits")
  func cancelled() async {
    for isEarly in [false, true] {
      let task = Task { try await SpawnedProcess.run("sleep", ["1000"]) }
      if !isEarly { try? await Task.sleep(for: .milliseconds(1)) }
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
    }
  }

  @Test("a stream is a sequence of its bytes, and of its lines")
  func sequences() async throws {
    var options = SpawnedProcess.Options()
    options.standardOutput = .pipe
    let first = try SpawnedProcess("seq", ["20000"], options: options)
    var bytes: [UInt8] = []
    for try await chunk in try #require(first.standardOutput) { bytes += chunk }
    #expect(bytes == Array((1...20_000).map { "\($0)\n" }.joined().utf8))
    let second = try SpawnedProcess("printf", ["one\\r\\n\\ntwo\\nthree"], options: options)
    var lines: [String] = []
    for try await line in try #require(second.standardOutput).lines() { lines.append(line) }
    #expect(lines == ["one", "", "two", "three"])
    let third = try SpawnedProcess("printf", ["12\\n123\\n"], options: options)
    var short: [String] = []
    await #expect(throws: PieceTooLongError(limit: 2)) {
      for try await line in try #require(third.standardOutput).lines(upTo: 2) { short.append(line) }
    }
    #expect(short == ["12"])
    for spawned in [first, second, third] {
      for await end in try ChildProcessSource.events(of: spawned, on: ServiceThread.loop) {
        #expect(end == .ended(.exited(code: 0)))
      }
    }
  }

  @Test("a sequence of bytes ends with an error when its stream is closed, before or during a wait")
  func closedSequence() async throws {
    for round in 0..<20 {
      let (reading, writing) = try socketPair()
      let stream = try InputByteStream(takingOver: reading)
      let task = Task { for try await _ in stream { Issue.record("no bytes") } }
      while stream.handler == nil { await Task.yield() }
      if round % 2 == 0 { try await Task.sleep(for: .milliseconds(1)) }
      stream.close()
      await #expect(throws: SocketError.invalid) { try await task.value }
      close(writing)
    }
  }

  @Test("an iterator continues after another one, and a task that is waiting loses the stream to the next reader")
  func severalIterators() async throws {
    let (reading, writing) = try socketPair()
    let stream = try InputByteStream(takingOver: reading)
    var first = stream.lines().makeAsyncIterator()
    for line in ["one", "two", "three"] {
      #expect(write(writing, line + "\n", line.utf8.count + 1) == line.utf8.count + 1)
      if line != "two" {
        #expect(try await first.next() == line)
      } else {
        for try await found in stream.lines() {
          #expect(found == line)
          break
        }
      }
    }
    for replaces in [{ _ = stream.makeAsyncIterator() }, { stream.handler = { _, _ in } }] as [() -> Void] {
      let end = Latch()
      let task = Task {
        defer { end.open() }
        var iterator = stream.makeAsyncIterator()
        return try await iterator.next()
      }
      // An iterator that is not waiting yet takes the stream back.
      while !end.isOpen {
        replaces()
        await Task.yield()
      }
      await #expect(throws: SocketError.busy) { try await task.value }
    }
    close(writing)
    #expect(try await first.next() == nil)
    stream.close()
  }

  @Test("a sequence of bytes ends with its task")
  func cancelledSequence() async throws {
    var options = SpawnedProcess.Options()
    options.standardOutput = .pipe
    let spawned = try SpawnedProcess("sleep", ["1000"], options: options)
    let stream = try #require(spawned.standardOutput)
    let task = Task {
      for try await _ in stream { Issue.record("no bytes") }
      return true
    }
    task.cancel()
    #expect(try await task.value)
    try spawned.send(signal: SIGKILL)
    _ = reap(spawned.process)
  }
}

/// Whether a process has ended, possibly as a zombie that was not reaped.
private func hasEnded(_ process: Int32) -> Bool {
  guard let reference = try? ProcessReference(process: process) else { return true }
  return reference.hasEnded
}

@Suite("Process groups", .timeLimit(.minutes(20)))
struct SpawnGroupTests {
  /// Starts a program that leads a group, and waits for its first line.
  private func start(_ script: String) throws -> (spawned: SpawnedProcess, line: String) {
    var options = SpawnedProcess.Options()
    options.standardOutput = .pipe
    options.leadsProcessGroup = true
    let spawned = try SpawnedProcess("/bin/sh", ["-c", script], options: options)
    let output = try #require(spawned.standardOutput)
    output.open()
    var line = ""
    waitUntil {
      let text = output.readText()
      if text != "nil" { line += text }
      return line.hasSuffix("\n")
    }
    return (spawned, String(line.dropLast()))
  }

  @Test("a child is asked to end with all of its group, and survivors are killed after the grace period")
  func terminated() throws {
    for (script, kills) in [
      ("sleep 1000 & echo $!; wait", false),
      ("sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1000; done' & wait", true),
    ] {
      let (spawned, line) = try start(script)
      let other = try #require(Int32(line))
      let log = onSocketLoop { loop, log in
        let source = ChildProcessSource(spawned) { _, end in
          log.write("\(end)")
          if !kills { loop.stop() }
        }
        try loop.add(source, forMode: .default)
        try spawned.terminate(within: kills ? .milliseconds(300) : .seconds(3600), on: loop) { _ in
          log.write("killed")
          loop.stop()
        }
        loop.runUntilStopped()
      }
      let end = ChildProcessSource.End.ended(.signalled(signal: SIGTERM, coreDumped: false))
      #expect(log == (kills ? "\(end) killed" : "\(end)"))
      waitUntil { hasEnded(other) }
    }
  }

  @Test("a signal is sent to the child alone or to its group")
  func targets() throws {
    let (spawned, line) = try start("sleep 1000 & echo $!; wait")
    let other = try #require(Int32(line))
    try spawned.send(signal: SIGKILL, to: .process)
    awaitEnd(of: spawned.process)
    #expect(!hasEnded(other))
    try spawned.send(signal: SIGKILL, to: .group)
    waitUntil { hasEnded(other) }
    _ = reap(spawned.process)
    let alone = try SpawnedProcess("sleep", ["1000"])
    #expect(throws: SystemError.self) { try alone.send(signal: SIGTERM, to: .group) }
    try alone.send(signal: SIGKILL)
    _ = reap(alone.process)
  }

  @Test("a stopped child is continued, so that it can end")
  func stopped() throws {
    let spawned = try SpawnedProcess("sleep", ["1000"])
    try spawned.send(signal: SIGSTOP)
    var information = siginfo_t()
    try #require(waitid(P_PID, id_t(spawned.process), &information, WSTOPPED | WNOWAIT) == 0)
    let log = onSocketLoop { loop, log in
      let source = ChildProcessSource(spawned) { _, end in log.write("\(end)") }
      try loop.add(source, forMode: .default)
      try spawned.terminate(within: .seconds(3600), on: loop) { _ in log.write("killed") }
      loop.runUntilStopped()
    }
    #expect(log == "\(ChildProcessSource.End.ended(.signalled(signal: SIGTERM, coreDumped: false)))")
  }

  #if DEBUG
    @Test("a program that another thread's child holds open for writing is started once it is closed")
    func textBusy() throws {
      let plan = FaultPlan()
      plan.plan(.processSpawn, .fails(ETXTBSY), .fails(ETXTBSY))
      let spawned = try plan.rule { try SpawnedProcess("true") }
      #expect(plan.isUsedUp && reap(spawned.process) == 0)
    }
  #endif

  @Test("a program that is open for writing cannot be started")
  func textBusyForever() throws {
    let path = socketPath()
    let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o755)
    defer {
      close(file)
      unlink(path)
    }
    let reason = SystemError(call: "execve", number: ETXTBSY)
    #expect(throws: SpawnError.system(program: path, reason)) { try SpawnedProcess(path) }
  }
}
