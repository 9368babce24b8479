// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@Suite("runloop why-alive", .ownThread) struct WhyAliveTests {
  private func loop(_ name: String, of victim: Victim) throws -> [String: Any] {
    let session = runloop("why-alive", "\(victim.number)", "--json")
    #expect(session.status == 0, "\(session.complaints)")
    let loops = try #require(try session.json()["loops"] as? [[String: Any]])
    return try #require(loops.first { $0["thread"] as? String == name }, "\(session.output)")
  }

  private func reasons(_ loop: [String: Any]) throws -> [[String: Any]] {
    try #require(loop["reasons"] as? [[String: Any]])
  }

  private func line(_ number: Int) throws -> Substring {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let text = try String(contentsOf: folder.appendingPathComponent("KeptVictim/Keepers.swift"), encoding: .utf8)
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    return try #require(number > 0 && number <= lines.count ? lines[number - 1] : nil)
  }

  @Test("each kind of item is listed with its modes, the user's function, and the line that added it")
  func items() throws {
    let victim = try Victim(["items"], program: "kept-victim", level: "watch")
    let loop = try loop("importer", of: victim)
    #expect(loop["mode"] as? String == "kCFRunLoopDefaultMode")
    #expect(loop["running"] as? Bool == true)
    #expect(loop["tid"] is Int)
    let functions = [
      "timer": "addTimer", "port": "addPort", "source0": "addSource", "descriptor": "addDescriptor",
      "signal": "addSignal", "child": "addChild", "listener": "addListener", "files": "addFiles",
    ]
    let reasons = try reasons(loop)
    #expect(Set(reasons.compactMap { $0["kind"] as? String }) == Set(functions.keys))
    #expect(reasons.count == functions.count)
    for reason in reasons {
      let kind = try #require(reason["kind"] as? String)
      let function = try #require(functions[kind])
      let added = try #require(place(reason["added"]), "\(reason)")
      #expect(added.function.contains("Importer.\(function)(_:)"), "\(reason)")
      #expect(added.file == "Keepers.swift")
      #expect(try line(added.line).contains("loop.add("), "\(reason)")
      let code = try #require(place(reason["code"]), "\(reason)")
      #expect(code.function.contains("Importer.\(function)(_:)"), "\(reason)")
      #expect(code.file == "Keepers.swift")
      #expect(reason["modes"] as? [String] == ["kCFRunLoopDefaultMode"])
      #expect((reason["detail"] as? String)?.isEmpty == false)
      #expect(Set(reason.keys) == ["kind", "modes", "code", "added", "detail"])
    }
    #expect(Set(loop.keys) == ["tid", "thread", "mode", "running", "reasons"])
  }

  @Test("at level off the items are listed, but not where they were added")
  func off() throws {
    let victim = try Victim(["items"], program: "kept-victim", level: "off")
    let reasons = try reasons(loop("importer", of: victim))
    #expect(reasons.count == 8)
    #expect(reasons.allSatisfy { $0["added"] is NSNull })
    let timer = try #require(reasons.first { $0["kind"] as? String == "timer" })
    #expect(place(timer["code"])?.function.contains("Importer.addTimer(_:)") == true)
  }

  @Test("a process started without preparation responds, and equal reasons are counted, with their growth")
  func groups() throws {
    let victim = try Victim(["growth"], program: "kept-victim", level: nil, hasDirectory: false)
    let session = runloop("why-alive", "\(victim.number)", "--for", "0.5", "--json")
    #expect(session.status == 0, "\(session.complaints)")
    let loops = try #require(try session.json()["loops"] as? [[String: Any]])
    let client = try #require(loops.first { $0["thread"] as? String == "client" })
    let groups = try #require(client["groups"] as? [[String: Any]])
    let grown = try #require(groups.first { ($0["growth"] as? Int ?? 0) > 0 }, "\(groups)")
    #expect(grown["count"] as? Int ?? 0 > 1)
    #expect(grown["kind"] as? String == "timer")
    #expect(place(grown["code"])?.function.contains("reconnect()") == true, "\(grown)")
    // Not the time when the first of them fires.
    #expect(grown["detail"] as? String == "every 3600 s")
    let text = runloop("why-alive", "\(victim.number)", "--thread", "client").output
    #expect(text.contains(" ×  timer ") && text.contains(" every 3600 s "), "\(text)")
    #expect(runloop("dump", "\(victim.number)").status == 0)
  }

  @Test(
    "a process that disabled instruments or misspelt its level does not respond", arguments: ["off", "of"])
  func unwilling(level: String) throws {
    let victim = try Victim(["growth"], program: "kept-victim", level: level, hasDirectory: false)
    #expect(runloop("why-alive", "\(victim.number)").complaints.first?.contains("no agent") == true)
  }

  @Test("a resident thread is listed once, with the place where it was made", arguments: ["watch", "record"])
  func resident(level: String) throws {
    let victim = try Victim(["resident"], program: "kept-victim", level: level)
    let reasons = try reasons(loop("resident, with a name that is longer than the kernel's", of: victim))
    #expect(reasons.compactMap { $0["kind"] as? String }.sorted() == ["resident", "timer"])
    let resident = try #require(reasons.first { $0["kind"] as? String == "resident" })
    #expect(place(resident["added"])?.function.contains("Residents.start") == true, "\(resident)")
    let timer = try #require(reasons.first { $0["kind"] as? String == "timer" })
    #expect(place(timer["added"])?.function.contains("Residents.addTimer(_:)") == true, "\(timer)")
  }

  @Test("from the first hand-off on, the source for hand-offs keeps a thread alive")
  func perform() throws {
    let victim = try Victim(["perform"], program: "kept-victim", level: "watch")
    let reasons = try reasons(loop("performs", of: victim))
    #expect(reasons.compactMap { $0["kind"] as? String } == ["perform"])
    #expect(place(reasons.first?["added"])?.function.contains("Performs.handOver") == true, "\(reasons)")
  }

  @Test(
    "blocks that wait behind a call-out for the running mode are listed, with any recorded places")
  func blocks() throws {
    let victim = try Victim(["blocks"], program: "kept-victim", level: "record")
    let reasons = try reasons(loop("blocks", of: victim))
    #expect(reasons.compactMap { $0["kind"] as? String } == ["port", "block", "block"], "\(reasons)")
    for block in reasons.dropFirst() {
      #expect(place(block["code"])?.function.contains("Blocks.post(_:)") == true, "\(block)")
      let line = try line(try #require(place(block["added"])).line)
      #expect(line.contains("loop.perform"), "\(block)")
      #expect(!line.contains("another"))
    }
  }

  @Test("the main dispatch queue keeps the main loop alive")
  func mainQueue() throws {
    let victim = try Victim(["main"], program: "kept-victim", level: "watch")
    let reasons = try reasons(loop("main", of: victim))
    #expect(reasons.compactMap { $0["kind"] as? String } == ["mainQueue"], "\(reasons)")
  }

  @Test("a loop that is not run has no reasons")
  func idle() throws {
    let victim = try Victim(["idle"], program: "kept-victim", level: "watch")
    let loop = try loop("main", of: victim)
    #expect(loop["mode"] is NSNull)
    #expect(loop["running"] as? Bool == false)
    #expect(try reasons(loop).isEmpty)
    #expect(runloop("why-alive", "\(victim.number)").output.contains("runs no mode"))
  }

  @Test("the readable output has a line per reason that says what, when and where")
  func screen() throws {
    let victim = try Victim(["items"], program: "kept-victim", level: "watch")
    let session = runloop("why-alive", "\(victim.number)", "--thread", "importer")
    let lines = session.output.split(separator: "\n")
    #expect(lines.first?.contains("runs kCFRunLoopDefaultMode, depth 1; it stays because of") == true)
    let timer = try #require(lines.first { $0.contains("timer") })
    #expect(timer.contains("every 3600 s, next in 60 min") || timer.contains("every 3600 s, next in 59"))
    #expect(timer.contains("Importer.addTimer(_:) Keepers.swift:"))
  }

  @Test("naming an unknown thread is reported in one sentence")
  func otherThread() throws {
    let victim = try Victim(["resident"], program: "kept-victim", level: "watch")
    let session = runloop("why-alive", "\(victim.number)", "--thread", "nobody")
    #expect(session.status == 1)
    #expect(session.complaints.count == 1)
  }

  @Test("runloop dump prints the loop, with each call-out as the user's function")
  func dump() throws {
    let victim = try Victim(["items"], program: "kept-victim", level: "watch")
    let session = runloop("dump", "\(victim.number)", "--thread", "importer")
    #expect(session.status == 0, "\(session.complaints)")
    let text = session.output
    #expect(text.contains("<RunLoop 0x"))
    #expect(text.contains("thread = importer ("))
    #expect(text.contains("depth = 1, waiting blocks = 0"))
    let callOuts = text.split(separator: "\n").filter { $0.contains("callout = ") }
    #expect(callOuts.count > 8)
    for line in callOuts where !line.contains("(none)") {
      let name = try #require(line.firstRange(of: "callout = ")).upperBound
      #expect(line[name...].contains("Importer.") && line[name...].contains(" Keepers.swift:"), "\(line)")
    }
    let json = try runloop("dump", "\(victim.number)", "--thread", "importer", "--json").json()
    let loops = try #require(json["loops"] as? [[String: Any]])
    #expect((loops.first?["description"] as? String)?.contains("callout = ") == true)
  }
}
