// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Foundation
import RunLoopToolKit
import Testing

@Suite("runloop postmortem", .ownThread) struct PostmortemTests {
  private func threads(_ session: Session) throws -> [String: [String: Any]] {
    let list = try #require(try session.json()["threads"] as? [[String: Any]])
    return Dictionary(
      uniqueKeysWithValues: list.compactMap { entry in (entry["thread"] as? String).map { ($0, entry) } })
  }

  private func calls(_ thread: [String: Any]?) throws -> [[String: Any]] {
    try #require(thread?["last"] as? [[String: Any]])
  }

  @Test("the last entry is the call-out that was running at the kill, with code, place and no end")
  func lastCallOut() throws {
    let victim = try Victim(["last"])
    victim.kill()
    let session = runloop("postmortem", try #require(victim.file), "--json")
    #expect(session.status == 0)
    let thread = try threads(session)["importer, a name that is longer than the kernel's"]
    let last = try calls(thread)
    let newest = try #require(last.first)
    #expect(newest["kind"] as? String == "block")
    #expect(newest["end"] is NSNull)
    #expect(place(newest["code"])?.function.contains("lastWork()") == true)
    #expect(place(newest["code"])?.file == "Work.swift")
    #expect(place(newest["posted"])?.function.contains("lastWork()") == true)
    let line = try #require(place(newest["posted"])?.line)
    #expect(try source("Work.swift")[line - 1].contains("worker.runLoop.perform"))
    #expect(last.count >= 1000)
    #expect(thread?["torn"] as? Int == 0)
  }

  @Test("--symbols supplies the names of a stripped program, but only from the same build")
  func symbols() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    for part in ["run", "build", "other"] {
      try FileManager.default.createDirectory(
        at: folder.appendingPathComponent(part), withIntermediateDirectories: true)
    }
    defer { try? FileManager.default.removeItem(at: folder) }
    let program = folder.appendingPathComponent("run/stripped").path
    for path in [program, folder.appendingPathComponent("build/stripped").path] { try Victim.copy(to: path) }
    try Victim.copy(program: "kept-victim", to: folder.appendingPathComponent("other/stripped").path)
    let strip = try Process.run(URL(fileURLWithPath: "/usr/bin/strip"), arguments: [program])
    strip.waitUntilExit()
    try #require(strip.terminationStatus == 0)
    let victim = try Victim(["last"], program: program)
    victim.kill()
    let file = try #require(victim.file)
    func code(_ arguments: String...) throws -> (function: String, file: String, line: Int)? {
      let session = runloop(["postmortem", file, "--json"] + arguments)
      let thread = try threads(session)["importer, a name that is longer than the kernel's"]
      return place(try calls(thread).first?["code"])
    }
    let plain = try #require(try code())
    #expect(plain.file != "Work.swift")
    let other = folder.appendingPathComponent("other").path
    let ofOther = try #require(try code("--symbols", other))
    #expect(ofOther.file != "Work.swift")
    let found = try code("--symbols", folder.appendingPathComponent("build").path)
    #expect(found?.file == "Work.swift" && found?.function.contains("lastWork()") == true, "\(found as Any)")
  }

  @Test("a process killed under load leaves no torn record, whenever it happens", arguments: 0..<5)
  func underLoad(turn: Int) throws {
    let victim = try Victim(["load"])
    usleep(UInt32(turn) * 7919)
    victim.kill()
    let session = runloop("postmortem", try #require(victim.file), "--json")
    let thread = try threads(session)["importer"]
    let last = try calls(thread)
    #expect(thread?["torn"] as? Int == 0)
    #expect(last.count >= 400)
    let blocks = last.filter { $0["kind"] as? String == "block" }
    #expect(blocks.allSatisfy { place($0["code"])?.function.contains("endlessWork()") == true })
    #expect(blocks.dropFirst().prefix(400).allSatisfy { place($0["posted"])?.file == "Work.swift" })
    let begins = last.compactMap { $0["begin"] as? Int }
    #expect(begins == begins.sorted(by: >))
    // All but the last one, and any call-outs that contain it.
    #expect(last.dropFirst().allSatisfy { $0["end"] is Int })
  }

  @Test("call-outs of each kind are named by the user's code or place")
  func everyKind() throws {
    let victim = try Victim(["kinds"])
    victim.kill()
    let last = try calls(try threads(runloop("postmortem", try #require(victim.file), "--json"))["kinds"])
    func names(_ kind: String, _ key: String = "code") -> Set<String> {
      Set(last.filter { $0["kind"] as? String == kind }.compactMap { place($0[key])?.function })
    }
    func has(_ kind: String, _ function: String, _ key: String = "code") -> Bool {
      names(kind, key).contains { $0.contains("Kinds.\(function)()") }
    }
    #expect(has("block", "block"), "\(names("block"))")
    #expect(has("block", "blockOfModes"), "\(names("block"))")
    #expect(has("block", "blockOfModes", "posted"), "\(names("block", "posted"))")
    #expect(has("perform", "perform"), "\(names("perform"))")
    #expect(has("perform", "perform", "posted"), "\(names("perform", "posted"))")
    #expect(has("perform", "performAndWait"), "\(names("perform"))")
    #expect(has("timer", "timer"), "\(names("timer"))")
    #expect(has("source0", "source0"), "\(names("source0"))")
    #expect(has("source1", "source1"), "\(names("source1"))")
    #expect(has("source1", "port"), "\(names("source1"))")
    #expect(has("observer", "observer"), "\(names("observer"))")
    #expect(has("schedule", "schedule"), "\(names("schedule"))")
    #expect(has("cancel", "schedule"), "\(names("cancel"))")
    #expect(names("job").contains { $0.contains("Pinned.job") }, "\(names("job"))")
    let ours = ["RunLoop", "thunk", "PerformTask", "partial apply"]
    for name in last.compactMap({ place($0["code"])?.function }) {
      #expect(!ours.contains { name.contains($0) }, "\(name)")
    }
    let files = Set(last.compactMap { place($0["code"])?.file })
    #expect(files.isSubset(of: ["Kinds.swift"]), "\(files)")
  }

  @Test("runloop record keeps the record of a program without a directory in its own memory")
  func memory() throws {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).record").path
    defer { try? FileManager.default.removeItem(atPath: path) }
    let session = runloop(
      "record", "--output", path, "--json", "--", "/usr/bin/env", "RUNLOOP_DIR=/nonexistent/records",
      Victim.program().path, "exit")
    #expect(session.status == 0)
    #expect(try session.json()["file"] as? String == path)
    let main = try threads(runloop("postmortem", path, "--json"))["main"]
    #expect(try calls(main).contains { $0["kind"] as? String == "block" })
  }

  @Test("postmortem rejects a running process in one sentence")
  func alive() throws {
    let victim = try Victim(["last"])
    let alive = runloop("postmortem", "--pid", "\(victim.number)")
    #expect(alive.status == 1)
    #expect(alive.complaints.count == 1)
  }

  @Test("a newer layout, a wrong file and a truncated one are each reported in one sentence")
  func otherLayouts() throws {
    let victim = try Victim(["last"])
    victim.kill()
    let file = try #require(victim.file)
    var bytes = try Data(contentsOf: URL(fileURLWithPath: file))
    let copy = "\(victim.directory)/copy"
    func complaint(_ bytes: Data) throws -> String {
      try bytes.write(to: URL(fileURLWithPath: copy))
      let session = runloop("postmortem", copy)
      #expect(session.status == 1)
      #expect(session.complaints.count == 1)
      return session.complaints.first ?? ""
    }
    #expect(try complaint(bytes.prefix(200_000)).contains("cut off"))
    bytes[8] = UInt8(CRL_LAYOUT_VERSION + 1)
    #expect(try complaint(bytes).contains("layout \(CRL_LAYOUT_VERSION + 1)"))
    #expect(try complaint(Data(repeating: 65, count: 5000)).contains("no records"))
    #expect(try complaint(Data()).contains("no records"))
    // A pipe without a writer.
    let pipe = "\(victim.directory)/pipe"
    #expect(mkfifo(pipe, 0o600) == 0)
    for session in [runloop("postmortem", pipe), runloop("trace", "--from", pipe, "--output", "\(pipe).html")] {
      #expect(session.status == 1)
      #expect(session.complaints.count == 1 && session.complaints.first?.contains("no file") ?? false)
    }
  }

  private func source(_ name: String) throws -> [Substring] {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let text = try String(contentsOf: folder.appendingPathComponent("RecordedVictim/\(name)"), encoding: .utf8)
    return text.split(separator: "\n", omittingEmptySubsequences: false)
  }
}
