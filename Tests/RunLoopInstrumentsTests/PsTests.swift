// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Foundation
import Testing

@testable import RunLoopToolKit

@Suite("runloop ps", .ownThread) struct PsTests {
  private func loops(_ session: Session) throws -> [[String: Any]] {
    try #require(try session.json()["loops"] as? [[String: Any]])
  }

  @Test("a loop that sleeps is idle at every level", arguments: ["off", "watch", "record"])
  func idle(level: String) throws {
    let victim = try Victim(["idle"], level: level)
    let session = runloop("ps", "\(victim.number)", "--json")
    #expect(session.status == 0)
    #expect(try session.json()["level"] as? String == level)
    #expect(try session.json()["pid"] as? Int == Int(victim.number))
    let loop = try #require(try loops(session).first { $0["thread"] as? String == "idle 0" })
    #expect(loop["state"] as? String == "idle")
    #expect(loop["mode"] as? String == "kCFRunLoopDefaultMode")
    #expect(loop["depth"] as? Int == 1)
    #expect(loop["queued"] as? Int == 0)
    #expect(loop["callOut"] is NSNull)
    #expect(loop["host"] is NSNull)
    #expect(!runloop("ps", "\(victim.number)").output.contains("HOST"))
  }

  @Test("a loop that runs as a guest has a host")
  func guest() throws {
    let victim = try Victim(["guest"], program: "hang-victim", level: "off")
    let loop = try #require(
      try loops(runloop("ps", "\(victim.number)", "--json")).first { $0["thread"] as? String == "main" })
    #expect(loop["host"] as? String == "program")
    #expect(loop["state"] as? String == "idle")
    let table = runloop("ps", "\(victim.number)").output
    #expect(table.contains("HOST") && table.contains("program"))
  }

  @Test("a call-out that does not end is hung, with the blocks behind it", arguments: ["off", "watch", "record"])
  func hung(level: String) throws {
    let victim = try Victim(["hang"], level: level)
    // Longer than a hang takes.
    usleep(260_000)
    let session = runloop("ps", "\(victim.number)", "--json", "--thread", "importer")
    let loop = try #require(try loops(session).first)
    #expect(loop["state"] as? String == "hung")
    #expect(loop["queued"] as? Int == 5)
    if level != "off" {
      let callOut = try #require(loop["callOut"] as? [String: Any])
      #expect(callOut["kind"] as? String == "block")
      if level == "record" { #expect(place(callOut["code"])?.function.contains("hang()") == true) }
      // Without a clock, the time since it was first seen.
      var now = timespec()
      clock_gettime(CLOCK_MONOTONIC, &now)
      let lasted = now.tv_sec * 1_000_000_000 + now.tv_nsec - (try #require(callOut["since"] as? Int))
      #expect(lasted >= 250_000_000, "\(lasted)")
    }
    // The level was restored.
    #expect(try runloop("ps", "\(victim.number)", "--json", "--thread", "importer").json()["level"] as? String == level)
  }

  @Test("a loop under load is busy or idle, not hung, and records only during the look")
  func busy() throws {
    let victim = try Victim(["load"], level: "off")
    let loop = try #require(try loops(runloop("ps", "\(victim.number)", "--json", "--thread", "importer")).first)
    #expect(["busy", "idle"].contains(loop["state"] as? String))
  }

  @Test("at level off, many short call-outs in one pass are no hang, for ps as for hangs")
  func manyShort() throws {
    let victim = try Victim(["many"], program: "kept-victim", level: "off")
    let loop = try #require(try loops(runloop("ps", "\(victim.number)", "--json", "--thread", "many")).first)
    #expect(loop["state"] as? String == "busy", "\(loop)")
    let session = runloop("hangs", "\(victim.number)", "--for", "1.5", "--json", "--thread", "many")
    let hangs = try #require(try session.json()["hangs"] as? [[String: Any]])
    #expect(!hangs.contains { $0["class"] as? String == "call-out" }, "\(hangs)")
  }

  @Test("a stopped process is stopped, and does not hang")
  func stopped() throws {
    let victim = try Victim(["hang"], level: "off")
    kill(victim.number, SIGSTOP)
    defer { kill(victim.number, SIGCONT) }
    let loop = try #require(try loops(runloop("ps", "\(victim.number)", "--json", "--thread", "importer")).first)
    #expect(loop["state"] as? String == "busy")
    #expect(runloop("ps", "\(victim.number)", "--thread", "importer").output.contains("stopped"))
  }

  @Test("a hang from before the look is named by its stack, and its duration includes the time before")
  func before() throws {
    let victim = try Victim(["hang"], level: "off")
    let output = runloop("ps", "\(victim.number)").output
    let lines = output.split(separator: "\n")
    #expect(lines.dropFirst().first?.contains("HUNG > ") == true, "\(output)")
    #expect(output.contains("hang()") && output.contains("block"), "\(output)")
  }

  @Test("ps names a process by its program, and shows wall clock times too")
  func names() throws {
    let victim = try Victim(["idle"], level: "off")
    #expect(runloop("ps", "no-such-program").complaints.first?.contains("has that name") == true)
    let document = try runloop("ps", "\(victim.number)", "--json").json()
    #expect((document["time"] as? String)?.hasSuffix("Z") == true)
    #expect(WallTime.formatted(0, "%Y-%m-%dT%H:%M:%S", isLocal: false, digits: 6) == "1970-01-01T00:00:00.000000")
    #expect(WallTime.formatted(-1, "%H:%M:%S", isLocal: false, digits: 3) == "23:59:59.999")
  }

  @Test("ps sees all of a hundred loops")
  func many() throws {
    let victim = try Victim(["loops", "100"], level: "off")
    let names = Set(try loops(runloop("ps", "\(victim.number)", "--json")).compactMap { $0["thread"] as? String })
    #expect(names.isSuperset(of: (0..<100).map { "idle \($0)" }))
  }

  @Test("an uninspectable process is reported in one sentence, with status 1")
  func refusals() throws {
    let none = try Victim(["none"])
    for number in ["\(none.number)", "\(Int32.max)"] {
      let session = runloop("ps", number)
      #expect(session.status == 1)
      #expect(session.complaints.count == 1)
      #expect(session.output.isEmpty)
    }
    #expect(runloop("ps", "x").status == 2)
    #expect(runloop("ps", "--bad").status == 2)
  }

  @Test("a linked or world-writable directory is not trusted, and the process reports that once")
  func unsafeDirectory() throws {
    let directory = try Victim.makeDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let link = "/dev/shm/runloop-tests-link-\(UUID().uuidString)"
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: directory)
    defer { try? FileManager.default.removeItem(atPath: link) }
    let victim = try Victim(["idle"], directory: link)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
    // The tool does not follow the link either, and reads the memory of the process.
    let names = try loops(runloop("ps", "\(victim.number)", "--json")).compactMap { $0["thread"] as? String }
    #expect(names.contains("idle 0"))
  }

  private static let separates = ["-Urpf", "--kill-child"]

  /// Whether a program can be started in a PID namespace of its own.
  private static let canSeparate: Bool = {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
    process.arguments = separates + ["/bin/true"]
    process.standardError = FileHandle.nullDevice
    guard (try? process.start()) != nil else { return false }
    process.waitUntilExit()
    return process.terminationStatus == 0
  }()

  private func parent(of number: Int32) -> Int32? {
    guard let text = try? String(contentsOfFile: "/proc/\(number)/stat", encoding: .utf8) else { return nil }
    return text.split(separator: ") ").last?.split(separator: " ").dropFirst().first.flatMap { Int32($0) }
  }

  @Test(
    "processes with records in other directories are found, also in other PID namespaces",
    arguments: canSeparate ? [false, true] : [false])
  func elsewhere(isSeparate: Bool) throws {
    let program = Victim.program().path
    let separated = PsTests.separates + [program, "idle"]
    let victim = isSeparate ? try Victim(separated, program: "/usr/bin/unshare") : try Victim(["idle"])
    let list = try #require(try runloop("ps", "--json").json()["processes"] as? [[String: Any]])
    let numbers = list.compactMap { $0["pid"] as? Int }.map { Int32($0) }
    #expect(numbers.contains { $0 == victim.number || parent(of: $0) == victim.number }, "\(numbers)")
  }

  @Test("a directory in which nothing can be created does no harm, and the process reports it once")
  func rejectingDirectory() throws {
    // Only root can create files there; its owner cannot.
    let own = try Victim.makeDirectory()
    defer { try? FileManager.default.removeItem(atPath: own) }
    #expect(chmod(own, 0o500) == 0)
    let process = Process()
    let complaints = Pipe()
    process.executableURL = Victim.program()
    process.arguments = ["exit"]
    process.environment = ["RUNLOOP_DIR": geteuid() == 0 ? "/proc" : own, "RUNLOOP_INSTRUMENTS": "watch"]
    process.standardError = complaints
    try process.start()
    let text = String(decoding: complaints.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    #expect(text.split(separator: "\n").count == 1 && text.contains("none can be made"), "\(text)")
  }

  @Test("an exiting process removes its file, a killed one leaves it, and eight of these are kept")
  func files() throws {
    let directory = try Victim.makeDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: directory) }
    try Victim(["exit"], directory: directory, waits: false).waitForExit()
    #expect(try names().isEmpty)
    var killed: [Int32] = []
    for _ in 0..<10 {
      let victim = try Victim(["idle"], directory: directory)
      victim.kill()
      killed.append(victim.number)
    }
    let last = try Victim(["idle"], directory: directory)
    let kept = try names().compactMap { Int32($0.prefix { $0 != "." }) }
    #expect(Set(kept) == Set(killed.suffix(8) + [last.number]))
  }

  @Test("a forked child has its own file, and its parent's stays unchanged")
  func fork() throws {
    let victim = try Victim(["fork"], waits: false)
    var child: Int32 = 0
    var isReady = false
    while child == 0 || !isReady {
      let line = try victim.line()
      if line == "ready" { isReady = true } else { child = Int32(line) ?? child }
    }
    defer { kill(child, SIGKILL) }
    let parent = try loops(runloop("ps", "\(victim.number)", "--json"))
    #expect(parent.contains { $0["thread"] as? String == "parent" })
    let own = try loops(runloop("ps", "\(child)", "--json"))
    #expect(own.count == 1)
    #expect(own.first?["depth"] as? Int == 1)
    #expect((own.first?["callOut"] as? [String: Any])?["kind"] as? String == "block")
  }
}
