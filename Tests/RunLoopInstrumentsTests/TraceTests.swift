// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Foundation
import Testing

@testable import RunLoopToolKit

@Suite("runloop trace", .ownThread) struct TraceTests {
  private static let python = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent(".build/perfetto/bin/python3")
  /// Whether Perfetto's schema is installed, which `.ci/setup --install` does.
  private static let hasSchema = FileManager.default.isExecutableFile(atPath: python.path)

  /// The output of `Tests/Perfetto/read-trace`, which reads a trace with Perfetto's own schema.
  private func flows(_ path: String) throws -> [String] {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let process = Process()
    process.executableURL = Self.python
    process.arguments = [root.appendingPathComponent("Tests/Perfetto/read-trace").path, path]
    let (output, errors) = (Pipe(), Pipe())
    process.standardOutput = output
    process.standardError = errors
    try process.start()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    let complaints = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0, "\(complaints)")
    return text.split(separator: "\n").map(String.init)
  }

  /// A flow whose closure names are shortened to the enclosing functions.
  private func shortened(_ flow: String) -> String {
    flow.replacing(#/(closure #\d+ in )+/#, with: "")
  }

  @Test("an existing output file stays unchanged when the command fails, and is replaced when it succeeds")
  func outputFile() throws {
    let directory = try Victim.makeDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let path = "\(directory)/kept.html"
    let link = "\(directory)/link.html"
    try Data("what was there".utf8).write(to: URL(fileURLWithPath: path))
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
    func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: directory).sorted() }
    #expect(runloop("trace", "\(Int32.max)", "--for", "1", "--output", path).status == 1)
    #expect(runloop("trace", "--from", "/nonexistent/record", "--output", link).status == 1)
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "what was there")
    #expect(try names() == ["kept.html", "link.html"])
    let victim = try Victim(["idle"])
    #expect(runloop("trace", "\(victim.number)", "--for", "0.1", "--output", link).status == 0)
    #expect(try String(contentsOfFile: path, encoding: .utf8).contains("<html"))
    #expect(try names() == ["kept.html", "link.html"])
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == path)
  }

  @Test(
    "a flow leads from each cause to its effects and from nothing else, by Perfetto's own schema",
    .enabled(if: hasSchema))
  func causes() throws {
    let victim = try Victim(["causes"])
    victim.kill()
    let path = "\(victim.directory)/causes.pftrace"
    let session = runloop("trace", "--from", try #require(victim.file), "--output", path, "--json")
    #expect(session.status == 0, "\(session.complaints)")
    let found = Set(try flows(path).map(shortened))
    for (from, to) in [
      ("post()", "post()"), ("performs()", "performs()"), ("waits()", "waits()"), ("signals()", "signals()"),
      ("sends()", "sends()"), ("addsTimer()", "addsTimer()"), ("movesTimer()", "movesTimer()"),
    ] {
      let flow = "first: Causes.\(from) -> second: Causes.\(to)"
      #expect(found.contains(flow), "\(flow) is not in \(found.sorted().joined(separator: "\n"))")
    }
    for (from, to) in [
      ("makesTask()", "isMade"), ("makesTaskInPool()", "isMadeInPool"), ("resumesTask(after:)", "isResumed"),
    ] {
      #expect(
        found.contains { $0.hasPrefix("first: Causes.\(from) -> second: ") && !$0.hasSuffix("sleep") },
        "\(from) leads to no job for \(to) in \(found.sorted().joined(separator: "\n"))")
    }
    // A wait leads there and back.
    #expect(found.contains("second: Causes.waits() -> first: has waited"))
    let causes = try #require(try session.json()["causes"] as? [[String: Any]])
    for (from, to) in [("first", "second"), ("second", "first")] {
      let isThere = causes.contains { cause in
        (cause["from"] as? [String: Any])?["thread"] as? String == from
          && (cause["to"] as? [String: Any])?["thread"] as? String == to && (cause["count"] as? Int ?? 0) > 0
      }
      #expect(isThere, "\(from) -> \(to) is not in \(causes)")
    }
    // Waking a sleeping loop ends its sleep, but on a busy machine the loop may be awake when a step comes.
    #expect(found.contains { $0.hasPrefix("first: Causes.") && $0.hasSuffix(" -> second: sleep") })
    // Work that no call-out caused comes from a thread.
    #expect(found.contains { $0.hasPrefix("main: posts -> first: Causes.post()") })
    // No flow is wrong: no function of one step leads to a function of another.
    for flow in found where flow.hasPrefix("first: Causes.") && flow.contains("-> second: Causes.") {
      let parts = flow.split(separator: " -> ").map { $0.split(separator: ".").last ?? "" }
      #expect(parts[0] == parts[1], "\(flow)")
    }
  }

  @Test(
    "of 100 tasks that pass through Swift's pool, 99 lead back to the call-outs that made them",
    .enabled(if: hasSchema))
  func tasks() throws {
    let victim = try Victim(["tasks"])
    victim.kill()
    let path = "\(victim.directory)/tasks.pftrace"
    let session = runloop("trace", "--from", try #require(victim.file), "--output", path, "--json")
    #expect(session.status == 0, "\(session.complaints)")
    let found = try flows(path).filter {
      $0.hasPrefix("first: ") && $0.contains("-> second: ") && !$0.hasSuffix("sleep")
    }
    #expect(found.count(where: { $0.contains("Tasks.run()") }) >= 198, "\(found.count)")
  }

  @Test("loops without room for records are counted and reported")
  func roomless() throws {
    let victim = try Victim(["loops", "80"])
    let session = runloop("trace", "\(victim.number)", "--for", "0.1", "--output", "\(victim.directory)/many.html")
    #expect(session.status == 0, "\(session.complaints)")
    let line = session.output.split(separator: "\n").first { $0.contains("found no room") }
    // The program's other threads may or may not have room.
    let count = line?.split(separator: " ").first.flatMap { Int($0) }
    #expect(count ?? 0 >= 80 - 64, "\(session.output)")
  }

  @Test("a running process is traced, and its level is restored afterwards", arguments: ["off", "record"])
  func living(level: String) throws {
    let victim = try Victim(["load"], level: level)
    let path = "\(victim.directory)/load.pftrace"
    // On a busy machine the process leaves fewer records.
    var (records, seconds) = (0, 0.3)
    repeat {
      let session = runloop("trace", "\(victim.number)", "--for", "\(seconds)", "--output", path, "--json")
      #expect(session.status == 0, "\(session.complaints)")
      let document = try session.json()
      records = document["records"] as? Int ?? 0
      #expect(document["torn"] as? Int == 0)
      seconds *= 2
    } while records <= 1000 && seconds < 30
    #expect(records > 1000)
    if Self.hasSchema { #expect(try !flows(path).isEmpty) }
    #expect(try runloop("ps", "\(victim.number)", "--json").json()["level"] as? String == level)
  }

  @Test(
    "a hanging call-out has its thread's stack, by Perfetto's own schema", .enabled(if: hasSchema))
  func stacksForPerfetto() throws {
    let hangs = [("read", "hangInRead()"), ("compute", "hangInCompute()"), ("port", "hangInPort()")]
    func stands(_ thread: String, _ lines: [String]) -> [String] {
      lines.filter { $0.hasPrefix("\(thread): ") && $0.contains(" stands in ") }
    }
    let lines = try Victim.hanging { victim in
      let path = "\(victim.directory)/hangs.pftrace"
      let session = runloop("trace", "\(victim.number)", "--for", "300", "--output", path, "--json")
      #expect(session.status == 0, "\(session.complaints)")
      return try flows(path).map(shortened)
    } until: { lines in
      hangs.allSatisfy { stands($0.0, lines).first?.contains($0.1) == true }
    }
    for (thread, function) in hangs {
      let found = stands(thread, lines)
      #expect(found.count == 1, "\(thread): \(found)")
      #expect(found.first?.contains("Hangs.\(function)") == true, "\(found)")
    }
  }

  @Test("a loop that hung before the trace began has the stack on its thread's track", .enabled(if: hasSchema))
  func stackWithoutRecord() throws {
    let victim = try Victim(["late", "600"], program: "hang-victim", level: "off")
    let path = "\(victim.directory)/late.pftrace"
    // On a busy machine a single look may take long.
    var (lines, seconds) = ([String](), 1)
    var isFound: Bool {
      lines.contains { $0.hasPrefix("late: hangs stands in ") && $0.contains("hangBeforeAnybodyLooks()") }
    }
    repeat {
      #expect(runloop("trace", "\(victim.number)", "--for", "\(seconds)", "--output", path).status == 0)
      lines = try flows(path)
      seconds *= 2
    } while !isFound && seconds < 100
    #expect(isFound, "\(lines)")
  }

  @Test("the page shows the stack of a hang and what its thread did")
  func stacksOnThePage() throws {
    let document = try Victim.hanging { victim in
      let path = "\(victim.directory)/hangs.html"
      #expect(runloop("trace", "\(victim.number)", "--for", "300", "--output", path, "--thread", "read").status == 0)
      return try self.document(of: String(contentsOfFile: path, encoding: .utf8))
    } until: { document in
      (document["stacks"] as? [[String: Any]])?.isEmpty == false
    }
    let names = try #require(document["names"] as? [[Any]]).map { $0.first as? String ?? "" }
    let stacks = try #require(document["stacks"] as? [[String: Any]])
    #expect(stacks.count == 1)
    let functions = (stacks.first?["names"] as? [Int] ?? []).map { names[$0] }
    #expect(functions.contains { $0.contains("Hangs.hangInRead()") }, "\(functions)")
    #expect((stacks.first?["state"] as? String)?.hasPrefix("blocked in read(") == true, "\(stacks)")
  }

  private func document(of text: String) throws -> [String: Any] {
    let start = try #require(text.range(of: "id=\"trace\">\n"))
    let end = try #require(text.range(of: "\n</script>", range: start.upperBound..<text.endIndex))
    let data = String(text[start.upperBound..<end.lowerBound])
    #expect(!data.contains("<"))
    return try #require(try JSONSerialization.jsonObject(with: Data(data.utf8)) as? [String: Any])
  }

  @Test("the command ends when the traced process ends, and writes what it has seen")
  func endsMeanwhile() throws {
    let victim = try Victim(["load"])
    let number = victim.number
    let path = "\(victim.directory)/ended.html"
    let directory = victim.directory
    let killer = Thread {
      // Until the command has found the process and reads its file.
      while !isMapped(in: directory) { usleep(1000) }
      usleep(1_000_000)
      Foundation.kill(number, SIGKILL)
    }
    killer.start()
    let session = runloop("trace", "\(number)", "--for", "600", "--output", path)
    #expect(session.status == 0, "\(session.complaints)")
    #expect(try String(contentsOfFile: path, encoding: .utf8).contains("endlessWork()"))
  }

  @Test("a page is one self-contained file, and names in it are never markup")
  func page() throws {
    let victim = try Victim(["causes"])
    victim.kill()
    let path = "\(victim.directory)/causes.html"
    #expect(runloop("trace", "--from", try #require(victim.file), "--output", path).status == 0)
    let text = try String(contentsOfFile: path, encoding: .utf8)
    for word in ["http://", "https://", " src=", "<link", "@import", "url("] {
      #expect(!text.contains(word), "\(word)")
    }
    let document = try document(of: text)
    let lanes = try #require(document["lanes"] as? [[String: Any]])
    #expect(Set(lanes.compactMap { $0["name"] as? String }).isSuperset(of: ["first", "second"]))
  }

  @Test("invalid arguments, and files that cannot be read or written, are reported in one sentence")
  func refusals() throws {
    let victim = try Victim(["idle"])
    let number = "\(victim.number)"
    for arguments in [
      ["trace", number, "--output", "x.html"], ["trace", number, "--for", "1", "--output", "x.txt"],
      ["trace", "--for", "1", "--output", "x.html"], ["trace", number, "--for", "-1", "--output", "x.html"],
      ["trace", number, "--from", "y", "--output", "x.html"],
    ] {
      #expect(runloop(arguments).status == 2, "\(arguments)")
    }
    for arguments in [
      ["trace", number, "--for", "0.1", "--output", "/nonexistent/x.html"],
      ["trace", "--from", "/nonexistent", "--output", "\(victim.directory)/x.html"],
      ["trace", number, "--for", "0.1", "--thread", "nobody", "--output", "\(victim.directory)/x.html"],
    ] {
      let session = runloop(arguments)
      #expect(session.status == 1, "\(arguments)")
      #expect(session.complaints.count == 1)
    }
    // A file to which nothing was written leaves nothing behind.
    #expect(!FileManager.default.fileExists(atPath: "\(victim.directory)/x.html"))
  }
}

@Suite("a timeline", .ownThread) struct TimelineTests {
  private func block(_ number: UInt64, _ begin: Int64, _ end: Int64, outer: UInt32 = 0) -> Timeline.Item {
    Timeline.Item(
      number: number, outer: outer, kind: 1, mode: "kCFRunLoopDefaultMode", depth: 1, begin: begin, end: end)
  }

  private func timeline(_ lanes: [[Timeline.Item]], slots: [Int]) -> Timeline {
    var all: [Timeline.Lane] = []
    for (index, items) in lanes.enumerated() {
      var lane = Timeline.Lane(slot: slots[index], thread: Int32(100 + index), name: "loop \(index)", items: items)
      lane.nest()
      all.append(lane)
    }
    var timeline = Timeline(process: 1, processName: "test", lanes: all, threads: [:], begin: 0, end: 1_000_000)
    timeline.connect()
    return timeline
  }

  @Test("a cause counts only if its record's time matches too, as its slot may have held another loop")
  func staleCause() {
    var effect = block(1, 500, 600)
    effect.posted = 450
    effect.cause = 3 << 48 | 7
    // Slot 3 held two loops, and both have a record 7.
    let found = timeline([[effect], [block(7, 100, 200)], [block(7, 400, 460)]], slots: [0, 3, 3])
    #expect(found.edges.map(\.from) == [.item(.init(lane: 2, index: 0))])
    #expect(found.lostCauses == 0)
    let stale = timeline([[effect], [block(7, 100, 200)]], slots: [0, 3])
    #expect(stale.edges.isEmpty)
    #expect(stale.lostCauses == 1)
  }

  @Test("causes are counted by call-out kinds and threads, and awaited results lead back")
  func causes() {
    var (first, second) = (block(1, 500, 600), block(2, 700, 800))
    (first.posted, first.cause) = (450, 3 << 48 | 7)
    (second.posted, second.cause) = (455, 3 << 48 | 7)
    second.isAwaited = true
    let timeline = timeline([[first, second], [block(7, 400, 900)]], slots: [0, 3])
    let cause = Timeline.Doer(thread: 101, name: "loop 1", kind: 1)
    let effect = Timeline.Doer(thread: 100, name: "loop 0", kind: 1)
    #expect(
      timeline.causes == [
        Timeline.CauseCount(from: cause, to: effect, count: 2), Timeline.CauseCount(from: effect, to: cause, count: 1),
      ])
  }

  @Test("a cause that is not a call-out is its thread")
  func causeOfThread() {
    var effect = block(1, 500, 600)
    (effect.posted, effect.cause) = (450, 1 << 63 | 77)
    let causes = timeline([[effect]], slots: [0]).causes
    #expect(causes.map(\.from) == [Timeline.Doer(thread: 77, name: "77", kind: nil)])
  }

  @Test("a call-out with a lost end ends no later than the next outer one begins")
  func lostEnd() {
    var lost = block(1, 100, 1_000_000)
    lost.isEndLost = true
    let found = timeline([[lost, block(2, 200, 300, outer: 1), block(3, 700, 800)]], slots: [0])
    #expect(found.lanes[0].items.map(\.end) == [700, 300, 800])
    #expect(found.lanes[0].items.map(\.parent) == [nil, 0, nil])
    #expect(found.lanes[0].items.map(\.level) == [0, 1, 0])
  }

  @Test("a long call-out is a hang unless nested runs inside it make progress")
  func hangs() {
    let milliseconds: Int64 = 1_000_000
    func item(_ number: UInt64, _ begin: Int64, _ end: Int64, outer: UInt32 = 0, isRun: Bool = false) -> Timeline.Item {
      var item = block(number, begin * milliseconds, end * milliseconds, outer: outer)
      if isRun { item.kind = 13 }
      return item
    }
    let found = timeline(
      [
        [
          item(1, 0, 249), item(2, 300, 550),
          // A modal session in which a call-out hangs.
          item(3, 1000, 2000), item(4, 1100, 1900, outer: 3, isRun: true), item(5, 1200, 1500, outer: 4),
          // A call-out that hangs after its runs, which belong to a call-out inside it.
          item(6, 3000, 4000), item(7, 3100, 3600, outer: 6), item(8, 3200, 3300, outer: 7, isRun: true),
        ]
      ], slots: [0])
    #expect(found.lanes[0].hangs.map { found.lanes[0].items[$0].number } == [2, 5, 6, 7])
  }

  @Test("waiting posts are counted from each post to its call-out")
  func queue() {
    var items = [block(1, 100, 200), block(2, 200, 300), block(3, 300, 400)]
    for index in items.indices { items[index].posted = [50, 60, 250][index] }
    let found = timeline([items], slots: [0]).lanes[0].queue
    #expect(found.map(\.time) == [50, 60, 100, 200, 250, 300])
    #expect(found.map(\.count) == [1, 2, 1, 0, 1, 0])
  }

  @Test("too many records are merged with their neighbours, keeping their time and causes")
  func coarse() {
    var items: [Timeline.Item] = []
    for number in 0..<10_000 as Range<Int64> {
      var item = block(UInt64(number + 1), number * 100, number * 100 + 60)
      item.posted = number * 100
      item.cause = 1 << 48 | 1
      items.append(item)
    }
    // A long one stays separate.
    items.append(block(10_001, 1_000_000, 9_000_000))
    let all = timeline([items, [block(1, 0, 2_000_000)]], slots: [0, 1])
    #expect(all.edges.count == 10_000)
    let found = all.coarsened(to: 200, .init())
    #expect(found.itemCount <= 200)
    #expect(found.leftOut == 0)
    #expect(found.lanes[0].items.reduce(0) { $0 + $1.count } == 10_001)
    #expect(found.merged > 0)
    #expect(found.lanes[0].items.last?.count == 1)
    #expect(!found.edges.isEmpty)
    for edge in found.edges { #expect(edge.to.index < found.lanes[edge.to.lane].items.count) }
    // A small enough number stays unchanged.
    #expect(all.coarsened(to: 20_000, .init()).merged == 0)
  }
}

/// Whether this process has mapped a file of a directory.
///
/// Reads line by line, because Foundation takes a short read of a file without a size for its end.
private func isMapped(in directory: String) -> Bool {
  guard let file = fopen("/proc/self/maps", "r") else { return false }
  var line: UnsafeMutablePointer<CChar>?
  var capacity = 0
  defer {
    fclose(file)
    free(line)
  }
  while getline(&line, &capacity, file) > 0 {
    if let line, String(cString: line).contains(directory) { return true }
  }
  return false
}
