// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@Suite("Hangs in items of other loops", .ownThread) struct HostedHangTests {
  private func hangs(_ how: String, for seconds: Double) throws -> [[String: Any]] {
    let victim = try Victim(["hosted", how], program: "named-victim", level: "off")
    let session = runloop("hangs", "\(victim.number)", "--for", "\(seconds)", "--json")
    return try #require(try session.json()["hangs"] as? [[String: Any]])
  }

  private static let hasGLib = dlopen("libglib-2.0.so.0", RTLD_NOW) != nil

  @Test(
    "a hang in an item of GLib's loop is found once, with its kind and its stack", .enabled(if: hasGLib),
    arguments: ["glib", "glib-served"])
  func hangInGLib(how: String) throws { try hang(how: how, function: "hangInTimeout()") }

  @Test(
    "GLib's loop is not reported when it sleeps, or is busy without a hang", .enabled(if: hasGLib),
    arguments: ["idle", "busy"])
  func innocentGLib(state: String) throws { try innocent("glib-\(state)", state) }

  @Test(
    "a hang in an item of Core Foundation's loop is found once, with its kind and its stack",
    arguments: [
      ("timer", "hangInFoundationTimer()"), ("perform", "hangInFoundationBlock()"), ("queue", "hangInDispatchBlock()"),
      ("served", "hangInFoundationTimer()"), ("nested", "hangInFoundationTimer()"),
      ("thread", "hangInFoundationTimer()"),
    ])
  func hang(how: String, function: String) throws {
    // On a busy machine, the watch may see only the end of a hang.
    let found = try Victim.looking(from: 4, until: { $0.first.map(lasted) ?? false }) { try hangs(how, for: $0) }
    #expect(found.count == 1, "\(found)")
    let hang = try #require(found.first)
    #expect(hang["class"] as? String == "call-out")
    #expect((hang["callOut"] as? [String: Any])?["kind"] as? String == "host", "\(hang)")
    #expect((hang["blockedIn"] as? [String: Any])?["call"] as? String == "clock_nanosleep", "\(hang)")
    let stack = (hang["stack"] as? [Any] ?? []).compactMap { place($0)?.function }
    #expect(stack.contains { $0.contains(function) }, "\(stack)")
    #expect(!stack.contains { $0.contains("@objc") }, "\(stack)")
    // The functions that run the loop are not part of the item.
    #expect(!stack.contains { $0.hasPrefix("static HostedHangs.run") }, "\(stack)")
    #expect(lasted(hang))
  }

  /// Whether a hang is not over, or was seen for most of its 1.5 s.
  private func lasted(_ hang: [String: Any]) -> Bool {
    guard let begin = hang["begin"] as? Int, let end = hang["end"] as? Int else { return true }
    return end - begin >= 1_300_000_000
  }

  @Test(
    "loops that sleep in each other, or that are busy without a hang, are not reported", arguments: ["idle", "busy"])
  func innocent(state: String) throws { try innocent(state, state) }

  private func innocent(_ how: String, _ state: String) throws {
    #expect(try hangs(how, for: 2).isEmpty)
    let victim = try Victim(["hosted", how], program: "named-victim", level: "off")
    // A busy loop also waits for a processor, or for its next item.
    let states = try Victim.looking(until: { $0 == [state] }) { _ in
      let loops = try #require(try runloop("ps", "\(victim.number)", "--json").json()["loops"] as? [[String: Any]])
      return try loops.map { try #require($0["state"] as? String) }
    }
    #expect(states == [state])
  }

  @Test("a process that watches itself finds a hang in an item of Core Foundation's loop, and counts it")
  func watched() throws {
    let victim = try Victim(["hosted", "watched"], program: "named-victim", level: "off")
    #expect(try victim.line(containing: "began") == "began main host")
    #expect(try victim.line(containing: "ended") == "ended main host")
    #expect(try victim.line(containing: "hangs") == "hangs 1")
  }
}
