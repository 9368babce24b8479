// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@Suite("The names of what the layers above the loop call", .ownThread) struct NameTests {
  /// The user functions named in a victim's records, by the kind of call-out.
  private func names(_ what: String) throws -> [String: Set<String>] {
    let victim = try Victim([what], program: "named-victim")
    victim.kill()
    let document = try runloop("postmortem", try #require(victim.file), "--json").json()
    var names: [String: Set<String>] = [:]
    for thread in try #require(document["threads"] as? [[String: Any]]) {
      for callOut in thread["last"] as? [[String: Any]] ?? [] {
        guard let kind = callOut["kind"] as? String, let name = place(callOut["code"])?.function else { continue }
        names[kind, default: []].insert(name)
      }
    }
    return names
  }

  @discardableResult
  private func check(_ what: String, _ expected: [(kind: String, function: String)]) throws -> [String: Set<String>] {
    let names = try names(what)
    for (kind, function) in expected {
      // A victim's function that contains a closure, or one of its types.
      let method = "." + (function.hasSuffix(")") ? function : function + "()")
      let isNamed = names[kind]?.contains {
        $0.split(separator: ".").last.map(String.init) == function || $0.contains(method)
      }
      #expect(isNamed == true, "\(kind) \(function): \(names[kind] ?? [])")
    }
    let ours = ["RunLoop", "thunk", "partial apply", "metadata", "MainActor"]
    for name in names.values.joined() { #expect(!ours.contains { name.contains($0) }, "\(name)") }
    return names
  }

  @Test("commits, queues, pools and asynchronous transactions are named after the closures they call")
  func transactions() throws {
    let names = try check(
      "transactions",
      [
        ("observer", "stage"), ("observer", "committed"), ("observer", "endOfTurn"), ("observer", "queue"),
        ("source0", "completion"), ("source0", "completionOfMany"), ("block", "flushed"),
      ])
    // Code that the block itself commits does not take its name.
    #expect(names["block"]?.contains { $0.contains("addStage") } == false)
  }

  @Test("lookups, connections, streams, programs and message ports are named after the closures they call")
  func ports() throws {
    try check(
      "ports",
      [
        ("block", "lookup"), ("source1", "connection"), ("source1", "stream"), ("source1", "datagram"),
        ("source1", "program"), ("source1", "receiver(_:)"), ("source1", "observeEnd(of:_:)"),
      ])
  }

  @Test("delegates are named after their types, and notifications after the place that queued them")
  func foundation() throws {
    try check(
      "foundation",
      [
        ("source0", "StreamListener"), ("observer", "notification"), ("observer", "plainNotification"),
        ("source1", "PortListener"), ("observer", "stage"), ("source0", "source"), ("timer", "timer"),
        ("source0", "fileHandle"),
      ])
  }

  @Test("a request's call-outs are named after its closures, its sink and the connection's delegate")
  func network() throws {
    try check(
      "network",
      [
        ("source0", "response"), ("source0", "progress"), ("source1", "redirect"), ("source1", "challenge"),
        ("source0", "cookies"), ("source1", "Drain"), ("source0", "completion"), ("source1", "completionByLoader"),
        ("source0", "batch"), ("source0", "ConnectionListener"), ("source0", "downloadProgress"),
      ])
  }

  @Test("views and contents are named after their types, and actions after their closures")
  func display() throws {
    try check(
      "display",
      [
        ("observer", "LaidOutView"), ("observer", "DrawnView"), ("source0", "press"), ("observer", "tap"),
        ("source0", "TypedView"), ("source0", "write"), ("observer", "DrawnContent"), ("observer", "show"),
      ])
  }
}
