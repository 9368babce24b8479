// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets
@testable import RunLoopSystemEvents

@Suite("Spawned programs", .timeLimit(.minutes(20)))
struct SpawnTests {
  /// Returns a program's output, and how it ends.
  private func output(
    _ program: String, _ arguments: [String], input: String = "", _ options: SpawnedProcess.Options = .init()
  ) -> String {
    onSocketLoop { loop, log in
      var options = options
      options.standardInput = .pipe
      options.standardOutput = .pipe
      let spawned = try SpawnedProcess(program, arguments, options: options)
      let left = Box(2)
      let text = Log()
      let finish: @Sendable () -> Void = {
        left.value -= 1
        if left.value == 0 { loop.stop() }
      }
      let source = ChildProcessSource(spawned) { _, end in
        log.write("\(end)")
        finish()
      }
      try loop.add(source, forMode: .default)
      guard let reading = spawned.standardOutput, let writing = spawned.standardInput else {
        return log.write("no pipe")
      }
      try reading.log(text, on: loop, end: finish)
      writing.open()
      if !input.isEmpty { log.write("\(try writing.write(Array(input.utf8)) ?? 0)") }
      writing.close()
      loop.runUntilStopped()
      log.write(text.text)
    }
  }

  private let success = "\(ChildProcessSource.End.ended(.exited(code: 0)))"

  @Test("a program's pipes are streams, and its end is reported")
  func pipes() {
    #expect(output("/bin/cat", [], input: "there and back") == "14 \(success) open [there and back] [] end")
  }

  @Test("a program is found in the path, and gets its arguments, environment and directory unchanged")
  func words() {
    #expect(output("printf", ["%s|", "a b", "", "$x"]) == "\(success) open [a b||$x|] [] end")
    var options = SpawnedProcess.Options()
    options.environment = ["ONLY": "this"]
    options.directory = "/"
    #expect(output("/bin/sh", ["-c", "echo $ONLY $HOME $PWD"], options) == "\(success) open [this /\n] [] end")
  }

  @Test("a malformed name of an environment variable is rejected", arguments: ["", "A=B", "="])
  func environmentNames(_ name: String) {
    var options = SpawnedProcess.Options()
    options.environment = [name: "c"]
    #expect(throws: SpawnError.environmentName(name)) { try SpawnedProcess("/bin/true", options: options) }
  }

  private func output(_ program: String, _ arguments: [String], _ options: SpawnedProcess.Options) -> String {
    output(program, arguments, input: "", options)
  }

  @Test("a program inherits only the descriptors passed to it, with the requested numbers")
  func descriptors() throws {
    var ends: [Int32] = [0, 0]
    // Without close-on-exec, as a careless library leaves them.
    try #require(pipe(&ends) == 0)
    defer { for end in ends { close(end) } }
    var options = SpawnedProcess.Options()
    // The two numbers are exchanged.
    options.descriptors = [ends[0]: ends[1], ends[1]: ends[0]]
    options.standardError = .standardOutput
    let script = """
      for each in /proc/self/fd/*; do
        number=${each##*/}
        case $(readlink $each) in pipe:*) [ $number -gt 2 ] && printf '%s ' $number ;; esac
      done
      printf x >/proc/self/fd/\(ends[0])
      """
    let log = output("/bin/sh", ["-c", script], options)
    // In the order of their names, in one chunk or in two.
    let numbers = ends.map(String.init).sorted()
    #expect(log.replacing("] [", with: "").contains("[\(numbers[0]) \(numbers[1]) ]"), "\(log)")
    // Bytes written to the reading end's number were sent to the writing end.
    var byte: UInt8 = 0
    #expect(read(ends[0], &byte, 1) == 1 && byte == UInt8(ascii: "x"))
  }

  @Test("a descriptor may be passed under the highest number that a process can have")
  func highestNumber() async {
    // In its own process, which has another limit.
    await #expect(processExitsWith: .success) {
      let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
      var limit = rlimit()
      getrlimit(resource, &limit)
      limit.rlim_cur = 256
      setrlimit(resource, &limit)
      var options = SpawnedProcess.Options()
      options.descriptors = [254: 2, 255: 1]
      let test = try SpawnedProcess("test", ["-e", "/proc/self/fd/255"], options: options)
      #expect(ForkedEnd(waitingFor: test.process) == .exited(0))
    }
  }

  @Test("the error output can be separate, merged with the output, or discarded")
  func standardError() {
    let script = "echo out; echo err >&2"
    var options = SpawnedProcess.Options()
    options.standardError = .standardOutput
    #expect(output("/bin/sh", ["-c", script], options).contains("err"))
    options.standardError = .null
    #expect(!output("/bin/sh", ["-c", script], options).contains("err"))
    let log = onSocketLoop { loop, log in
      var options = SpawnedProcess.Options()
      options.standardInput = .null
      options.standardOutput = .null
      options.standardError = .pipe
      let spawned = try SpawnedProcess("/bin/sh", ["-c", script], options: options)
      log.write("\(spawned.standardInput == nil) \(spawned.standardOutput == nil)")
      try spawned.standardError?.log(log, on: loop) { loop.stop() }
      loop.runUntilStopped()
      _ = reap(spawned.process)
    }
    #expect(log == "true true open [err\n] [] end")
  }

  @Test("a spawned program may lead a group, a session, or both")
  func leaders() {
    let script =
      "read -r id name state parent group session rest </proc/self/stat; echo $((id == group)) $((id == session))"
    for (leadsGroup, leadsSession, expected) in [(true, false, "1 0"), (false, true, "1 1"), (true, true, "1 1")] {
      var options = SpawnedProcess.Options()
      options.leadsProcessGroup = leadsGroup
      options.leadsSession = leadsSession
      #expect(output("/bin/sh", ["-c", script], options) == "\(success) open [\(expected)\n] [] end")
    }
  }

  @Test(
    "an error in the first line of a script is reported",
    arguments: [
      ("#!/no/such/shell\n", "/no/such/shell"), ("#! /bin/sh\r\necho\r\n", "/bin/sh\r"),
      ("#!/etc/passwd -x", "/etc/passwd"),
    ])
  func firstLine(text: String, interpreter: String) throws {
    var template = Array("/tmp/first-line-XXXXXX".utf8CString)
    let file = mkstemp(&template)
    let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer { unlink(path) }
    #expect(write(file, text, text.utf8.count) == text.utf8.count && fchmod(file, 0o755) == 0 && close(file) == 0)
    var options = SpawnedProcess.Options()
    options.directory = "/tmp"
    for name in [path, "./" + path.dropFirst("/tmp/".count)] {
      let error = #expect(throws: SpawnError.self) { _ = try SpawnedProcess(name, options: options) }
      guard case .interpreter(interpreter, name, _)? = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(error?.description.contains(interpreter.debugDescription) == true)
    }
  }

  @Test("a program that cannot be started is an error that names it, and nothing leaks")
  func failures() throws {
    #expect(throws: SpawnError.notFound(program: "/no/such/program")) { try SpawnedProcess("/no/such/program") }
    #expect(throws: SpawnError.notFound(program: "no-such-program")) { try SpawnedProcess("no-such-program") }
    #expect(throws: SpawnError.notFound(program: "")) { try SpawnedProcess("") }
    #expect(throws: SpawnError.zeroByte("a\0b")) { try SpawnedProcess("true", ["a\0b"]) }
    let directory = SystemError(call: "execve", number: EACCES)
    #expect(throws: SpawnError.system(program: "/tmp", directory)) { try SpawnedProcess("/tmp") }
    var options = SpawnedProcess.Options()
    options.directory = "/no/such/directory"
    let missing = SystemError(call: "chdir", number: ENOENT)
    let nowhere = SpawnError.directory("/no/such/directory", program: "true", missing)
    #expect(throws: nowhere) { try SpawnedProcess("true", options: options) }
    options = .init()
    options.descriptors = [5: 1_000_000]
    let closed = SystemError(call: "dup3", number: EBADF)
    let first = SpawnError.descriptor(1_000_000, as: 5, program: "true", closed)
    #expect(throws: first) { try SpawnedProcess("true", options: options) }
    let null = open("/dev/null", O_RDONLY | O_CLOEXEC)
    defer { close(null) }
    options.descriptors = [4: null, 7: -1, 9: -2]
    let negative = SpawnError.descriptor(-1, as: 7, program: "true", closed)
    #expect(throws: negative) { try SpawnedProcess("true", options: options) }
    options = .init()
    options.standardError = .descriptor(1_000_001)
    let standard = SpawnError.descriptor(1_000_001, as: 2, program: "true", closed)
    #expect(throws: standard) { try SpawnedProcess("true", options: options) }
    options.descriptors = Dictionary(uniqueKeysWithValues: (3...203).map { (Int32($0), null) })
    #expect(throws: SpawnError.tooManyDescriptors(201, limit: 200)) { try SpawnedProcess("true", options: options) }
    options = .init()
    for number in [-1, 2, 65536] as [Int32] {
      options.descriptors = [number: 0]
      #expect(throws: SpawnError.badNumber(number)) { try SpawnedProcess("true", options: options) }
    }
  }

  @Test("a child has no blocked signals or inherited handlers, and dies of a broken pipe")
  func signals() {
    let log = output("/bin/sh", ["-c", "cat /proc/self/status; kill -PIPE $$"])
    for mask in ["SigBlk", "SigCgt"] { #expect(log.contains("\(mask):\t0000000000000000"), "\(log)") }
    #expect(log.contains("\(ChildProcessSource.End.ended(.signalled(signal: SIGPIPE, coreDumped: false)))"))
  }

  @Test("a descriptor of the parent's own with the number of a standard stream is not inherited")
  func ownDescriptorAsStandardInput() async {
    await #expect(processExitsWith: .success) {
      close(STDIN_FILENO)
      let own = open("/dev/null", O_RDONLY | O_CLOEXEC)
      guard own == STDIN_FILENO else { exit(2) }
      let spawned = try SpawnedProcess("/bin/sh", ["-c", "test ! -e /proc/self/fd/0"])
      guard reap(spawned.process) == 0 else { exit(3) }
    }
  }

  @Test("a new group or session is led by the child")
  func groups() throws {
    for leadsSession in [false, true] {
      var options = SpawnedProcess.Options()
      options.leadsProcessGroup = !leadsSession
      options.leadsSession = leadsSession
      let spawned = try SpawnedProcess("sleep", ["1000"], options: options)
      #expect(getpgid(spawned.process) == spawned.process)
      #expect((getsid(spawned.process) == spawned.process) == leadsSession)
      try spawned.send(signal: SIGKILL)
      _ = reap(spawned.process)
    }
  }

  @Test("a child that ends when asked is not killed, and its timer is removed")
  func asked() {
    let log = onSocketLoop { loop, log in
      let spawned = try SpawnedProcess("sleep", ["1000"])
      let source = ChildProcessSource(spawned) { _, end in log.write("\(end)") }
      try loop.add(source, forMode: .default)
      log.write("\(try spawned.terminate(within: .seconds(3600), on: loop) { _ in log.write("killed") })")
      // Until neither the source nor the timer is left.
      log.write("\(loop.runUntilStopped())")
      log.write("\(spawned.hasEnded) \(try spawned.terminate(within: .zero, on: loop))")
    }
    let end = ChildProcessSource.End.ended(.signalled(signal: SIGTERM, coreDumped: false))
    #expect(log == "true \(end) finished true false")
  }

  @Test("a child that ignores the request is killed at its deadline, and not before")
  func killed() throws {
    let spawned = try startedDeafProgram()
    let log = onVirtualSocketLoop { loop, log in
      let begin = loop.now
      try spawned.terminate(within: .seconds(5), on: loop) { spawned in
        log.write("killed @\(loop.now - begin)")
        loop.stop()
      }
      log.write("\(loop.runUntilStopped())")
    }
    #expect(log == "killed @5.0 seconds stopped")
    let status = try #require(reap(spawned.process))
    #expect(status & 0x7F == SIGKILL)
    // Its number may be reused by now, and that process is not signalled.
    #expect(throws: SystemError.self) { try spawned.send(signal: SIGTERM) }
  }

  @Test("a child's end can be awaited without reaping it, and is reported even to a later source")
  func leftStatus() throws {
    let log = onSocketLoop { loop, log in
      let spawned = try SpawnedProcess("/bin/sh", ["-c", "exit 7"])
      let looking = ChildProcessSource(spawned, leavesStatus: true) { _, end in
        log.write("\(end)")
        loop.stop()
      }
      try loop.add(looking, forMode: .default)
      loop.runUntilStopped()
      log.write("\(reap(spawned.process).map { $0 & 0x7F == 0 ? $0 >> 8 : -$0 } ?? -1)")
      let late = ChildProcessSource(spawned) { _, end in
        log.write("\(end)")
        loop.stop()
      }
      try loop.add(late, forMode: .default)
      loop.runUntilStopped()
    }
    let end = ChildProcessSource.End.ended(.exited(code: 7))
    #expect(log == "\(end) 7 \(end)")
  }

  @Test("concurrent threads may spawn many programs, and each end is reported correctly")
  func storm() {
    let count = 40
    let threads = (0..<3).map { thread in
      SourceRig.start {
        let loop = RunLoop.current
        let left = Box(count)
        for number in 0..<count {
          do {
            var options = SpawnedProcess.Options()
            options.standardInput = .null
            options.standardOutput = .pipe
            let code = Int32(number + thread)
            let spawned = try SpawnedProcess("/bin/sh", ["-c", "exit \(code)"], options: options)
            let source = ChildProcessSource(spawned) { _, end in
              #expect(end == .ended(.exited(code: code)))
              left.value -= 1
              if left.value == 0 { loop.stop() }
            }
            try loop.add(source, forMode: .default)
          } catch { Issue.record("\(error)") }
        }
        loop.runUntilStopped()
      }
    }
    for thread in threads { thread.join() }
  }

  #if DEBUG
    @Test("a system call that fails while a program is started is named in the error")
    func faults() throws {
      for (call, number) in [
        (SystemCall.pipe, EMFILE), (.descriptorFlags, EBADF), (.openFile, ENFILE), (.processSpawn, EAGAIN),
      ] {
        var options = SpawnedProcess.Options()
        options.standardInput = .pipe
        options.standardError = .null
        let given = options
        let plan = FaultPlan()
        plan.plan(call, .fails(number))
        let error = SpawnError.system(program: "true", SystemError(call: call.rawValue, number: number))
        _ = plan.rule { #expect(throws: error) { try SpawnedProcess("true", options: given) } }
        #expect(plan.isUsedUp)
      }
    }

    @Test("whichever call fails while a program is started, nothing runs and no descriptor leaks")
    func everyFault() async {
      await #expect(processExitsWith: .success) {
        var options = SpawnedProcess.Options()
        (options.standardInput, options.standardOutput, options.standardError) = (.pipe, .pipe, .null)
        let (given, before) = (options, DescriptorCensus())
        for (call, number, count) in [
          (SystemCall.pipe, EMFILE, 2), (.descriptorFlags, EBADF, 2), (.openFile, ENFILE, 1),
          (.processSpawn, EAGAIN, 1),
        ] {
          for index in 0..<count {
            let plan = FaultPlan()
            for _ in 0..<index { plan.plan(call, nil) }
            plan.plan(call, .fails(number))
            let error = SpawnError.system(program: "true", SystemError(call: call.rawValue, number: number))
            _ = plan.rule { #expect(throws: error) { try SpawnedProcess("true", options: given) } }
            #expect(plan.isUsedUp && DescriptorCensus().isWithin(before), "\(call) \(index)")
          }
        }
        #expect(waitpid(-1, nil, WNOHANG) == -1 && errno == ECHILD)
      }
    }

    @Test("a child that cannot be signalled does not count as asked to end")
    func signalFault() throws {
      let spawned = try SpawnedProcess("sleep", ["1000"])
      let error = SystemError(call: "pidfd_send_signal", number: EPERM)
      SourceRig.onThread { loop in
        let plan = FaultPlan()
        plan.plan(.processSignal, .fails(EPERM), .fails(ESRCH))
        plan.plan(.processKill, .fails(EPERM))
        plan.rule {
          #expect(throws: error) { try spawned.terminate(within: .zero, on: loop) }
          #expect((try? spawned.terminate(within: .zero, on: loop)) == false)
        }
        #expect(plan.isUsedUp)
      }
      try spawned.send(signal: SIGKILL)
      _ = reap(spawned.process)
    }

    @Test("if pidfd_send_signal is unavailable, a child is signalled by its number until it is reaped")
    func signalByNumber() throws {
      let spawned = try SpawnedProcess("sleep", ["1000"])
      let other = try ProcessReference(process: spawned.process)
      let plan = FaultPlan()
      plan.plan(.processSignal, .fails(ENOSYS), .fails(EPERM), .fails(ENOSYS), .fails(ENOSYS), .fails(ENOSYS))
      try plan.rule {
        try spawned.send(signal: SIGKILL)
        awaitEnd(of: spawned.process)
        try spawned.send(signal: SIGKILL)
        // A process whose parent is unknown is not signalled once it has ended.
        let gone = SystemError(call: "kill", number: ESRCH)
        #expect(throws: gone) { try other.send(signal: SIGKILL) }
        _ = reap(spawned.process)
        #expect(throws: gone) { try spawned.send(signal: SIGKILL) }
        #expect(throws: gone) { try other.send(signal: SIGKILL) }
      }
      #expect(plan.isUsedUp)
    }
  #endif
}
