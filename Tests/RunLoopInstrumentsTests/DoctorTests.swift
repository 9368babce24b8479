// SPDX-License-Identifier: Apache-2.0

import TestSupport
import CRunLoopRecorder
import Foundation
import Testing

@testable import RunLoopToolKit

@Suite("runloop doctor", .ownThread) struct DoctorTests {
  @Test("each cycle of threads that wait for each other is found once")
  func cycles() {
    let graph = WaitGraph([1: 2, 2: 3, 3: 1, 4: 1, 5: 6, 7: 7])
    #expect(graph.cycles == [[1, 2, 3], [7]])
    #expect(graph.chain(from: 4) == [4, 1, 2, 3])
    #expect(graph.chain(from: 5) == [5, 6])
    #expect(WaitGraph([:]).cycles.isEmpty)
  }

  private func findings(_ session: Session) throws -> [[String: Any]] {
    let processes = try #require(try session.json()["processes"] as? [[String: Any]])
    return try #require(processes.first?["findings"] as? [[String: Any]])
  }

  @Test("the doctor finds a hang, with its stack and the next command")
  func hang() throws {
    let victim = try Victim(["hang"], level: "off")
    let found = try Victim.looking(from: 0.5, until: { !$0.isEmpty }) {
      try findings(runloop("doctor", "\(victim.number)", "--for", "\($0)", "--json"))
    }
    #expect(found.first?["kind"] as? String == "hang")
    #expect(found.first?["thread"] as? String == "importer")
    let details = found.first?["details"] as? [String] ?? []
    #expect(details.contains { $0.contains("waitForEnd()") }, "\(found)")
    #expect((found.first?["next"] as? String)?.contains("runloop hangs \(victim.number)") == true)
  }

  /// Looks for a finding of a kind.
  private func finding(_ kind: String, of victim: Victim) throws -> [String: Any] {
    let found = try Victim.looking(until: { $0 != nil }) {
      try findings(runloop("doctor", "\(victim.number)", "--for", "\($0)", "--json")).first {
        $0["kind"] as? String == kind
      }
    }
    return try #require(found)
  }

  @Test("at level off, a lock's holder that waits for its waiter's work is a deadlock, with both stacks")
  func deadlock() throws {
    let found = try finding("deadlock", of: Victim(["deadlock"], program: "kept-victim", level: "off"))
    let title = try #require(found["title"] as? String)
    #expect(title.contains("main → importer → main") || title.contains("importer → main → importer"))
    let details = (found["details"] as? [String] ?? []).joined(separator: "\n")
    #expect(details.contains("Cache.refreshScreen()") && details.contains("Cache.importRows(_:)"), "\(details)")
  }

  @Test("a thread that takes a lock twice is a deadlock that waits for itself")
  func selfDeadlock() throws {
    let found = try finding("deadlock", of: Victim(["twice"], program: "kept-victim", level: "off"))
    #expect(found["title"] as? String == "DEADLOCK  main waits for itself")
    let details = (found["details"] as? [String] ?? []).joined(separator: "\n")
    #expect(details.contains("waits for itself") && details.contains("Cache.refreshScreen()"), "\(details)")
  }

  #if DEBUG
    @Test(
      "a debug build reports by itself where its main loop has hung for five seconds, and the thread that blocks it")
    func notice() throws {
      let victim = Process()
      let (output, complaints) = (Pipe(), Pipe())
      victim.executableURL = Victim.program(named: "kept-victim")
      victim.arguments = ["deadlock"]
      var environment = ProcessInfo.processInfo.environment
      environment["RUNLOOP_INSTRUMENTS"] = nil
      victim.environment = environment
      (victim.standardOutput, victim.standardError) = (output, complaints)
      try victim.start()
      let number = victim.processIdentifier
      // Keeps a silent victim from hanging the test.
      let limit = DispatchWorkItem { kill(number, SIGKILL) }
      DispatchQueue.global().asyncAfter(deadline: .now() + 300, execute: limit)
      defer {
        limit.cancel()
        kill(number, SIGKILL)
        victim.waitUntilExit()
      }
      var text = ""
      while !text.contains("turns this notice off") {
        let data = complaints.fileHandleForReading.availableData
        try #require(!data.isEmpty, "\(text)")
        text += String(decoding: data, as: UTF8.self)
      }
      #expect(text.contains("the main loop has hung for 5 s in"))
      #expect(text.contains("waits for importer") && text.contains("refreshScreen()"), "\(text)")
    }
  #endif

  @Test("a loop that never sleeps is overloaded, reported with its late timers and what takes the time")
  func overload() throws {
    let found = try finding("overload", of: Victim(["overload"], program: "kept-victim", level: "off"))
    #expect(found["thread"] as? String == "sensors")
    let details = (found["details"] as? [String] ?? []).joined(separator: "\n")
    #expect(details.contains("heartbeat()") && details.contains("late by"), "\(details)")
    #expect(details.contains("% of it in timer") && details.contains("readTelemetry()"), "\(details)")
  }

  @Test("a descriptor that is ready for long before its loop looks is reported, though no call-out is long")
  func starved() throws {
    let victim = try Victim(["starved"], program: "kept-victim", level: "off")
    // The first pass that is observed has no beginning.
    let output = Victim.looking(from: 2, until: { $0.contains("ready for up to") }) {
      runloop("doctor", "\(victim.number)", "--for", "\($0)").output
    }
    #expect(output.contains("descriptor of closure #1 in static Troubles.starved()"), "\(output)")
    #expect(output.contains("ready for up to"), "\(output)")
  }

  @Test("posts that arrive faster than a loop serves them are a backlog, with its growth per second")
  func backlog() throws {
    let found = try finding("backlog", of: Victim(["backlog"], program: "kept-victim", level: "off"))
    #expect(found["thread"] as? String == "encoder")
    #expect((found["title"] as? String)?.contains("more each second") == true)
  }

  @Test("timers that are added and never invalidated are a leak, reported with the function they call")
  func growth() throws {
    let found = try finding("growth", of: Victim(["growth"], program: "kept-victim", level: "off"))
    let title = try #require(found["title"] as? String)
    #expect(title.contains("× timer") && title.contains("reconnect()"), "\(title)")
    #expect(title.contains("more each second"), "\(title)")
  }

  @Test("the doctor reports a descriptor without a reader")
  func unread() throws {
    let found = try finding("unread", of: Victim(["unread"], program: "kept-victim", level: "off"))
    #expect((found["title"] as? String)?.contains("Troubles.unread()") == true, "\(found)")
  }

  @Test("the doctor says that a healthy process is healthy, and what it could not see")
  func nothing() throws {
    let victim = try Victim(["idle"], level: "off")
    let session = runloop("doctor", "\(victim.number)", "--for", "0.2")
    #expect(session.status == 0)
    #expect(session.output.contains("Nothing is wrong, as far as can be seen"))
    #expect(session.output.contains("has no agent that answers"))
    let named = runloop("doctor", "no-such-program", "--for", "0.2")
    #expect(named.status == 2)
    #expect(runloop("doctor", "\(victim.number)", "--for", "never").status == 2)
  }

  @Test("hangs that ended while the doctor looked are reported, with their number")
  func ended() throws {
    let title = try #require(
      finding("hang", of: Victim(["stutters"], program: "kept-victim", level: "off"))["title"] as? String)
    #expect(title.contains("stutters") && title.contains("in timer"), "\(title)")
    let victim = try Victim(["stutters"], program: "kept-victim", level: "off")
    let text = Victim.looking(from: 4, until: { $0.contains(" times") }) {
      runloop("doctor", "\(victim.number)", "--for", "\($0)").output
    }
    #expect(text.contains(" times"), "\(text)")
    #expect(text.contains("flushToDisk()"), "\(text)")
    // One finding for several hangs; on a busy machine another place may also have hung.
    let findings = text.split { $0.isNewline }.filter { $0.contains("HUNG") }
    #expect((1...2).contains(findings.count), "\(text)")
  }

  @Test("a thread that hangs in work it still performs after its stop is found, with the work")
  func drains() throws {
    let found = try finding("hang", of: Victim(["drains"], program: "kept-victim", level: "off"))
    #expect(found["thread"] as? String == "flusher")
    let details = (found["details"] as? [String] ?? []).joined(separator: "\n")
    #expect(details.contains("Troubles.flushBeforeEnd()"), "\(found)")
  }

  @Test("a child, or its own child, blocked while writing to the parent's pipe is found", arguments: [true, false])
  func pipe(isChild: Bool) throws {
    let child = Process()
    let output = Pipe()
    child.executableURL = URL(fileURLWithPath: "/bin/sh")
    // It ends at the first failed write, also where SIGPIPE is blocked.
    let writes = "while echo an unread line; do :; done"
    child.arguments = ["-c", isChild ? writes : "(\(writes)); true"]
    child.standardOutput = output
    try child.start()
    defer {
      // The pipe's last reader, without which its writers end.
      try? output.fileHandleForReading.close()
      kill(child.processIdentifier, SIGKILL)
      child.waitUntilExit()
    }
    let reader = output.fileHandleForReading.fileDescriptor
    var found: FullPipe?
    // It fills the pipe first.
    while found == nil {
      try #require(child.isRunning)
      found = FullPipe.all(of: getpid()).first { $0.readers.contains(reader) }
    }
    #expect(found?.isOfChild == isChild)
    #expect((found?.writer == child.processIdentifier) == isChild)
  }

  @Test("absurd times and counts are summed up to the limits of numbers")
  func absurdTimes() {
    let clock = RecordClock(crl_header())
    var meter = LoopMeter(since: 0)
    var record = crl_record()
    record.kind = UInt8(CRL_KIND_BLOCK.rawValue)
    record.code = 1
    (record.begin, record.end) = (1, UInt64(Int64.max))
    for _ in 0..<20 { meter.add(record, nil, clock) }
    record.code = 2
    (record.begin, record.end) = (1000, 10)
    meter.add(record, nil, clock)
    #expect(meter.sums().map { $0.sum.total } == [.max, 0])
    meter.addSample(0, at: 1)
    meter.addSample(.max, at: 2)
    #expect(meter.rate == 1_000_000_000_000_000)
  }

  @Test("a finding has a title, its evidence and the next command")
  func texts() {
    let finding = DoctorFinding(kind: .backlog, thread: "a", title: "t", details: ["d"], next: "n")
    #expect(finding.lines == ["t", "  d", "  next: n"])
    #expect(finding.json.line.contains("\"kind\": \"backlog\""))
  }
}
