// SPDX-License-Identifier: Apache-2.0

import Testing

@Suite("Hangs in items of Core Foundation's loops", .ownThread) struct HostedHangTests {
  private func hangs(_ how: String, for seconds: Double) throws -> [[String: Any]] {
    let victim = try Victim(["hosted", how], program: "named-victim", level: "off")
    let session = runloop("hangs", "\(victim.number)", "--for", "\(seconds)", "--json")
    return try #require(try session.json()["hangs"] as? [[String: Any]])
  }

  @Test(
    "a hang in an item of Core Foundation's loop is found once, with its kind and its stack",
    arguments: [
      ("timer", "hangInFoundationTimer()"), ("perform", "hangInFoundationBlock()"), ("queue", "hangInDispatchBlock()"),
      ("served", "hangInFoundationTimer()"), ("nested", "hangInFoundationTimer()"),
      ("thread", "hangInFoundationTimer()"),
    ])
  func hang(how: String, function: String) throws {
    let found = try Victim.looking(from: 4, until: { !$0.isEmpty }) { try hangs(how, for: $0) }
    #expect(found.count == 1, "\(found)")
    let hang = try #require(found.first)
    #expect(hang["class"] as? String == "call-out")
    #expect((hang["callOut"] as? [String: Any])?["kind"] as? String == "host", "\(hang)")
    #expect((hang["blockedIn"] as? [String: Any])?["call"] as? String == "clock_nanosleep", "\(hang)")
    let stack = (hang["stack"] as? [Any] ?? []).compactMap { place($0)?.function }
    #expect(stack.contains { $0.contains(function) }, "\(stack)")
    // The functions that run the loop are not part of the item.
    #expect(!stack.contains { $0.hasPrefix("static HostedHangs.run") }, "\(stack)")
    if let begin = hang["begin"] as? Int, let end = hang["end"] as? Int { #expect(end - begin >= 1_300_000_000) }
  }

  @Test(
    "loops that sleep in each other, or that are busy without a hang, are not reported", arguments: ["idle", "busy"])
  func innocent(how: String) throws {
    #expect(try hangs(how, for: 2).isEmpty)
    let victim = try Victim(["hosted", how], program: "named-victim", level: "off")
    let loops = try #require(try runloop("ps", "\(victim.number)", "--json").json()["loops"] as? [[String: Any]])
    #expect(loops.map { $0["state"] as? String } == [how])
  }

  @Test("a process that watches itself finds a hang in an item of Core Foundation's loop, and counts it")
  func watched() throws {
    let victim = try Victim(["hosted", "watched"], program: "named-victim", level: "off")
    #expect(try victim.line(containing: "began") == "began main host")
    #expect(try victim.line(containing: "ended") == "ended main host")
    #expect(try victim.line(containing: "hangs") == "hangs 1")
  }
}
