// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Foundation
import Glibc
import RunLoopCore
import RunLoopInstruments
import Testing

/// A program run by a user without other processes here, with the rights of a group that the user is not in.
private final class PrivilegedProgram {
  static let user = 65533
  let folder: URL
  private let process = Process()
  private let output = Pipe()
  /// Closed when this process ends in any way, which ends the program.
  private let input = Pipe()

  /// Starts a copy of a victim as root, set-group-ID if `isPrivileged`.
  init(_ arguments: [String], isPrivileged: Bool, environment: [String: String] = [:]) throws {
    folder = URL(fileURLWithPath: "/tmp/runloop-privileged-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    chmod(folder.path, 0o755)
    let program = folder.appendingPathComponent("victim")
    try Victim.copy(to: program.path)
    chown(program.path, 0, isPrivileged ? 65532 : 0)
    chmod(program.path, isPrivileged ? 0o2755 : 0o755)
    let user = "\(Self.user)"
    process.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
    process.arguments = ["--reuid", user, "--regid", user, "--clear-groups", program.path] + arguments
    process.environment = environment.merging(["SWIFT_BACKTRACE": "enable=no", "TEST_HOLDS_INPUT": "1"]) {
      first, _ in first
    }
    process.currentDirectoryURL = URL(fileURLWithPath: "/")
    process.standardInput = input
    _ = fcntl(input.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC)
    process.standardOutput = output
    try process.start()
    var text = ""
    while !text.contains("ready") {
      let data = output.fileHandleForReading.availableData
      if data.isEmpty { throw VictimError(text: "the program ended and said \"\(text)\"") }
      text += String(decoding: data, as: UTF8.self)
    }
  }

  deinit {
    if process.isRunning { kill(number, SIGKILL) }
    process.waitUntilExit()
    try? FileManager.default.removeItem(at: folder)
  }

  var number: Int32 { process.processIdentifier }

  /// The directories with its records inside a given directory.
  func records(in directory: String) -> [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    return names.filter { $0.hasPrefix("\(number).") }
  }

  /// The lines of its memory map that others could share.
  var sharedMemory: [Substring] {
    let maps = (try? String(contentsOfFile: "/proc/\(number)/maps", encoding: .utf8)) ?? ""
    return maps.split(separator: "\n").filter { $0.split(separator: " ").dropFirst().first?.hasSuffix("s") ?? false }
  }
}

@Suite("A program that may do more than its caller", .ownThread) struct PrivilegedTests {
  private static let canMakeOne = geteuid() == 0 && access("/usr/bin/setpriv", X_OK) == 0

  @Test(
    "a privileged program shares no memory with its caller and ignores the caller's environment",
    .enabled(if: canMakeOne, "only root can make a set-group-ID program and run it as another user"))
  func setGroupID() throws {
    let given = "/dev/shm/runloop-tests-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: given, withIntermediateDirectories: false)
    chown(given, UInt32(PrivilegedProgram.user), UInt32(PrivilegedProgram.user))
    chmod(given, 0o700)
    defer { try? FileManager.default.removeItem(atPath: given) }
    let usual = "/dev/shm/runloop-\(PrivilegedProgram.user)"
    let environment = ["RUNLOOP_DIR": given, "RUNLOOP_INSTRUMENTS": "record"]
    // The same program without the set-group-ID bit is visible, which proves that the check works.
    let plain = try PrivilegedProgram(["last"], isPrivileged: false, environment: environment)
    #expect(!plain.records(in: given).isEmpty)
    #expect(!plain.sharedMemory.isEmpty)
    for environment in [environment, [:]] {
      let program = try PrivilegedProgram(["last"], isPrivileged: true, environment: environment)
      #expect(program.records(in: given).isEmpty)
      #expect(program.records(in: usual).isEmpty)
      #expect(program.sharedMemory.isEmpty)
      let session = runloop("ps", "\(program.number)")
      #expect(session.status == 1)
      #expect(session.complaints.first?.contains("may do more than its caller") == true)
    }
  }

  @Test("a process that is not dumpable shares no memory and does not respond")
  func notDumpable() async {
    await #expect(processExitsWith: .success) {
      let directory = try Victim.makeDirectory()
      defer { try? FileManager.default.removeItem(atPath: directory) }
      setenv("RUNLOOP_DIR", directory, 1)
      becomeNotDumpable()
      #expect(RunLoopCore.RunLoop.current.run(mode: .default, for: .zero) == .finished)
      #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
      for given in [nil, directory] {
        #expect(throws: InstrumentsError.privileged) { try Instruments.listen(in: given) }
      }
    }
  }

  @Test("a process that becomes undumpable withdraws its memory when the level changes, and no longer responds")
  func laterNotDumpable() async {
    await #expect(processExitsWith: .success) {
      let directory = try Victim.makeDirectory()
      defer { try? FileManager.default.removeItem(atPath: directory) }
      setenv("RUNLOOP_DIR", directory, 1)
      let loop = RunLoopCore.RunLoop.current
      _ = loop.run(mode: .default, for: .zero)
      try #require(try FileManager.default.contentsOfDirectory(atPath: directory).count == 1)
      becomeNotDumpable()
      let holder = Instruments.hold(.record)
      // Used only on this thread.
      nonisolated(unsafe) var count = 0
      for _ in 0..<10 {
        loop.perform { count += 1 }
        _ = loop.run(mode: .default, for: .zero)
      }
      #expect(count == 10)
      #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
      // The loop continues to record, in private memory.
      #expect(Instruments.metrics(of: loop) != nil)
      holder.release()
    }
  }
}

@Suite("A process whose records another one damages", .ownThread) struct DamagedBoardTests {
  @Test("a process continues when its file is truncated, at each level", arguments: ["off", "watch", "record"])
  func truncated(level: String) throws {
    let victim = try Victim(["wakes"], level: level)
    #expect(truncate(try #require(victim.file), 0) == 0)
    try waitForWakes(of: victim)
  }

  @Test("a process continues when its file is truncated while its agent reads it")
  func truncatedBesideAgent() throws {
    let victim = try Victim(["resident"], program: "kept-victim", level: "record")
    #expect(truncate(try #require(victim.file), 0) == 0)
    for request in ["dump", "reasons", "dump"] {
      #expect(try AgentSocket(victim).answer("{\"request\": \"\(request)\"}").last?["end"] == .bool(true))
    }
  }

  @Test(
    "a process continues whatever is written into its file, repeatedly",
    arguments: ["off", "watch", "record"], [UInt8(0), 2, 0x7f, 0xff])
  func overwritten(level: String, byte: UInt8) throws {
    let victim = try Victim(["wakes"], level: level)
    let file = open(try #require(victim.file), O_RDWR | O_CLOEXEC)
    defer { close(file) }
    try #require(file >= 0)
    // The header from the level on, the faces, details, mode names and images, and then the first rings.
    let front = [UInt8](repeating: byte, count: 208_896 - 20)
    let rings = [UInt8](repeating: byte, count: 4 * 256 * 1024)
    for _ in 0..<50 {
      #expect(pwrite(file, front, front.count, 20) == front.count)
      #expect(pwrite(file, rings, rings.count, off_t(20 + front.count)) == rings.count)
      usleep(1000)
    }
    try waitForWakes(of: victim)
  }

  /// Waits until the threads of a process have slept many times; throws if the process ends.
  private func waitForWakes(of victim: Victim) throws {
    let first = try sleeps(of: victim)
    while try sleeps(of: victim) < first + 50 { usleep(1000) }
  }

  /// The number of times that its threads yielded their processors.
  private func sleeps(of victim: Victim) throws -> Int {
    // An ended process is a zombie until it is waited for.
    let state = try String(contentsOfFile: "/proc/\(victim.number)/stat", encoding: .utf8)
    try #require(state.split(separator: ")").last?.hasPrefix(" Z") == false)
    let threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(victim.number)/task")
    return threads.reduce(0) { sum, thread in
      let path = "/proc/\(victim.number)/task/\(thread)/status"
      let status = try? String(contentsOfFile: path, encoding: .utf8)
      let line = status?.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches") }
      return sum + (line?.split(separator: "\t").last.flatMap { Int($0) } ?? 0)
    }
  }
}

/// Hides this process's memory from others with `prctl`, which Swift cannot call directly because it is variadic.
private func becomeNotDumpable() {
  typealias Call = @convention(c) (Int32, UInt, UInt, UInt, UInt) -> Int32
  let symbol = dlsym(nil, "prctl")
  // PR_SET_DUMPABLE, which the Glibc module does not export.
  let answer = unsafeBitCast(symbol, to: Call?.self)?(4, 0, 0, 0, 0)
  #expect(answer == 0)
}
