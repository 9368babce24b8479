// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Foundation
import Testing

@testable import RunLoopToolKit

@Suite("runloop doctor", .ownThread) struct DoctorTests {
  @Test("threads that wait for each other are circles, each found once")
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

  @Test("a hang is found with its stack and the next command")
  func hang() throws {
    let victim = try Victim(["hang"], level: "off")
    var found: [[String: Any]] = []
    var seconds = 0.5
    // On a busy machine a look may be too short.
    repeat {
      found = try findings(runloop("doctor", "\(victim.number)", "--for", "\(seconds)", "--json"))
      seconds *= 2
    } while found.isEmpty && seconds < 60
    #expect(found.first?["kind"] as? String == "hang")
    #expect(found.first?["thread"] as? String == "importer")
    let details = found.first?["details"] as? [String] ?? []
    #expect(details.contains { $0.contains("waitForEnd()") }, "\(found)")
    #expect((found.first?["next"] as? String)?.contains("runloop hangs \(victim.number)") == true)
  }

  @Test("of a process in which nothing is wrong it says so, and what it could not see")
  func nothing() throws {
    let victim = try Victim(["idle"], level: "off")
    let session = runloop("doctor", "\(victim.number)", "--for", "0.2")
    #expect(session.status == 0)
    #expect(session.output.contains("Nothing is wrong, as far as can be seen"))
    #expect(session.output.contains("has no agent that answers"))
    let named = runloop("doctor", "no-such-program", "--for", "0.2")
    #expect(named.status == 1)
    #expect(runloop("doctor", "\(victim.number)", "--for", "never").status == 2)
  }

  @Test("a child that is blocked in writing to a pipe of its parent is found")
  func pipe() throws {
    let child = Process()
    let output = Pipe()
    child.executableURL = URL(fileURLWithPath: "/bin/sh")
    child.arguments = ["-c", "while true; do echo a line that nobody reads; done"]
    child.standardOutput = output
    try child.run()
    defer {
      kill(child.processIdentifier, SIGKILL)
      child.waitUntilExit()
    }
    var found: ChildPipe?
    // It fills the pipe first.
    while found == nil {
      try #require(child.isRunning)
      found = ChildPipe.blocked(of: getpid()).first { $0.child == child.processIdentifier }
    }
    #expect(found?.readers.contains(output.fileHandleForReading.fileDescriptor) == true)
  }

  @Test("times and counts that are made up are summed as far as numbers reach")
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

  @Test("a finding has its title, what shows it, and the next command")
  func texts() {
    let finding = DoctorFinding(kind: .backlog, thread: "a", title: "t", details: ["d"], next: "n")
    #expect(finding.lines == ["t", "  d", "  next: n"])
    #expect(finding.json.line.contains("\"kind\": \"backlog\""))
  }
}
