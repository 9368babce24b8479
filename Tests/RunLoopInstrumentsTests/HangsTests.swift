// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import TestSupport
import Testing

@Suite("runloop hangs", .ownThread) struct HangsTests {
  private struct Expected {
    var kind: String
    /// Contained in the code's name.
    var code: String
    var call: String?
    var on: String?
    var waitsFor: String?
    var isPosted = false
    /// Contained in the stack.
    var function: String
  }

  private static let expected: [String: Expected] = [
    "read": .init(
      kind: "block", code: "postRead()", call: "read", on: "pipe", isPosted: true, function: "hangInRead()"),
    "sleep": .init(
      kind: "timer", code: "startSleep()", call: "clock_nanosleep", isPosted: true,
      function: "hangInSleep()"),
    "lock": .init(
      kind: "source0", code: "signalLock()", call: "futex", on: "lock", waitsFor: "holder", isPosted: true,
      function: "hangInLock()"),
    "compute": .init(kind: "perform", code: "performCompute()", isPosted: true, function: "hangInCompute()"),
    "semaphore": .init(
      kind: "block", code: "postSemaphore()", call: "futex", isPosted: true, function: "hangInSemaphore()"),
    "performAndWait": .init(
      kind: "block", code: "postPerformAndWait()", call: "futex", waitsFor: "helper", isPosted: true,
      function: "hangInPerformAndWait()"),
    "join": .init(
      kind: "block", code: "postJoin()", call: "futex", on: "end of thread", waitsFor: "joined", isPosted: true,
      function: "hangInJoin()"),
    "descriptor": .init(
      kind: "source1", code: "writeToDescriptor()", call: "poll", on: "pipe", function: "hangInDescriptor()"),
    "port": .init(
      kind: "source1", code: "sendToPort()", call: "clock_nanosleep", isPosted: true, function: "hangInPort()"),
    "observer": .init(
      kind: "observer", code: "addObserver()", call: "recvfrom", on: "socket", function: "hangInObserver()"),
    "job": .init(kind: "job", code: "startJob()", call: "clock_nanosleep", function: "Hangs.hangInJob()"),
    "schedule": .init(kind: "schedule", code: "addSource()", call: "clock_nanosleep", function: "hangInSchedule()"),
    "nested": .init(kind: "timer", code: "postNested()", call: "clock_nanosleep", function: "hangInNested()"),
  ]

  private func hangs(_ session: Session) throws -> [[String: Any]] {
    try #require(try session.json()["hangs"] as? [[String: Any]])
  }

  private func functions(_ hang: [String: Any]) -> [String] {
    (hang["stack"] as? [Any] ?? []).compactMap { place($0)?.function }
  }

  @Test(
    "thirteen kinds of hang are found with code, kind and stack, without interrupting any blocking call")
  func thirteen() throws {
    let found = try Victim.hanging { victim in
      let number = "\(victim.number)"
      // Another tool looks at the same time.
      let looker = Foundation.Thread { for _ in 0..<20 { _ = runloop("ps", number, "--json") } }
      looker.start()
      let session = runloop("hangs", number, "--for", "300", "--threshold", "250", "--json")
      #expect(session.status == 0)
      #expect(try victim.line(containing: "interrupted") == "interrupted 0")
      return try hangs(session)
    } until: { found in
      // The program ends soon after the hangs, and a busy machine may look at the threads only then.
      let ended = found.filter { hang in
        let thread = (hang["waitsFor"] as? [String: Any])?["thread"] as? String
        return hang["end"] is Int && !functions(hang).isEmpty && (thread.map { Int($0) == nil } ?? true)
      }
      return Set(ended.compactMap { $0["thread"] as? String }).isSuperset(of: HangsTests.expected.keys)
    }
    for (thread, expected) in HangsTests.expected {
      let own = found.filter { $0["thread"] as? String == thread }
      #expect(own.count == 1, "\(thread)")
      guard let hang = own.first else { continue }
      check(hang, expected, thread)
    }
    // The helper thread that does the work for another one hangs too.
    let others = Set(found.compactMap { $0["thread"] as? String }).subtracting(HangsTests.expected.keys)
    #expect(others.isSubset(of: ["helper"]), "\(others)")
  }

  private func check(_ hang: [String: Any], _ expected: Expected, _ thread: String) {
    let callOut = hang["callOut"] as? [String: Any]
    #expect(hang["class"] as? String == "call-out", "\(thread)")
    #expect(callOut?["kind"] as? String == expected.kind, "\(thread)")
    #expect(place(callOut?["code"])?.function.contains(expected.code) == true, "\(thread): \(hang)")
    if expected.isPosted {
      #expect(place(callOut?["posted"])?.function.contains(expected.code) == true, "\(thread): \(hang)")
    }
    #expect(functions(hang).contains { $0.contains(expected.function) }, "\(thread): \(functions(hang))")
    let ours = ["RunLoop.", "runLoopIs", "PerformTask", "thunk"]
    #expect(!functions(hang).contains { name in ours.contains { name.contains($0) } }, "\(functions(hang))")
    let blocked = hang["blockedIn"] as? [String: Any]
    if let call = expected.call {
      #expect(hang["cpu"] as? String == "blocked", "\(thread)")
      #expect(blocked?["call"] as? String == call, "\(thread)")
      if let on = expected.on { #expect((blocked?["on"] as? String)?.contains(on) == true, "\(thread): \(hang)") }
    } else {
      #expect(["on-cpu", "runnable"].contains(hang["cpu"] as? String), "\(thread)")
      #expect(hang["blockedIn"] is NSNull, "\(thread)")
    }
    #expect((hang["waitsFor"] as? [String: Any])?["thread"] as? String == expected.waitsFor, "\(thread): \(hang)")
    guard let begin = hang["begin"] as? Int, let end = hang["end"] as? Int else {
      Issue.record("\(thread) has no end")
      return
    }
    #expect(end - begin >= 1_400_000_000, "\(thread)")
  }

  @Test(
    "the name of a program that does not run is a usage error of every command",
    arguments: ["ps", "hangs", "doctor", "why-alive", "dump"])
  func notThere(command: String) {
    let session = runloop(command, "no-such-program")
    #expect(session.status == 2)
    #expect(session.complaints.first?.contains("no process with a run loop has that name") == true)
  }

  @Test("a program that is waited for can be named too")
  func awaitedName() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: folder) }
    let program = folder.appendingPathComponent("late\(getpid())").path
    try Victim.copy(to: program)
    let look = DispatchQueue(label: "looks")
    let session = Mutex(Session(status: -1, output: "", complaints: []))
    let hasBegun = DispatchSemaphore(value: 0)
    let isOver = DispatchSemaphore(value: 0)
    look.async {
      hasBegun.signal()
      let found = runloop("hangs", "late\(getpid())", "--wait", "--for", "1", "--json")
      session.withLock { $0 = found }
      isOver.signal()
    }
    hasBegun.wait()
    let victim = try Victim(["idle"], program: program, level: "off", hasDirectory: false)
    let ended = isOver.wait(timeout: .now() + 300)
    victim.kill()
    try #require(ended == .success)
    let found = session.withLock { $0 }
    #expect(found.status == 0, "\(found.complaints)")
    #expect((try found.json()["look"] as? [String: Any])?["loops"] as? Int == 1)
  }

  @Test("a program whose file was deleted or replaced keeps its names", arguments: [false, true])
  func deletedFile(isReplaced: Bool) throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: folder) }
    let program = folder.appendingPathComponent("replaced").path
    try Victim.copy(to: program)
    let victim = try Victim(["hang"], program: program, level: "off")
    try FileManager.default.removeItem(atPath: program)
    if isReplaced { try FileManager.default.copyItem(atPath: "/bin/sh", toPath: program) }
    let found = try Victim.looking(until: { !$0.isEmpty }) {
      try hangs(runloop("hangs", "\(victim.number)", "--for", "\($0)", "--json"))
    }
    let hang = try #require(found.first)
    #expect(functions(hang).contains { $0.contains("waitForEnd()") }, "\(hang)")
  }

  @Test("idle, busy and nested runs, short or expected calls and other threads are not hangs")
  func innocents() throws {
    // The threshold is far beyond what a busy machine adds to a call-out of a tenth of a second.
    let victim = try Victim(["innocent", "2.5"], program: "hang-victim", level: "off")
    let session = runloop("hangs", "\(victim.number)", "--for", "300", "--threshold", "1500", "--json")
    #expect(session.status == 0)
    #expect(try hangs(session).isEmpty, "\(session.output)")
  }

  @Test("a process stopped for long during a short call-out does not hang")
  func stopped() throws {
    let victim = try Victim(["short"], program: "hang-victim", level: "off")
    let number = victim.number
    let stopper = Foundation.Thread {
      usleep(300_000)
      for _ in 0..<2 {
        kill(number, SIGSTOP)
        usleep(1_500_000)
        kill(number, SIGCONT)
        usleep(100_000)
      }
    }
    stopper.start()
    let session = runloop("hangs", "\(number)", "--for", "3.5", "--threshold", "1000", "--json")
    #expect(session.status == 0)
    #expect(try hangs(session).isEmpty, "\(session.output)")
  }

  @Test("a hang that began before the tool looked is found, with a stack that shows the function called")
  func late() throws {
    let victim = try Victim(["late", "600"], program: "hang-victim", level: "off")
    let found = try Victim.looking(until: { !$0.isEmpty }) {
      try hangs(runloop("hangs", "\(victim.number)", "--for", "\($0)", "--json"))
    }
    let hang = try #require(found.first)
    #expect(hang["thread"] as? String == "late")
    #expect(hang["end"] is NSNull)
    #expect((hang["callOut"] as? [String: Any])?["kind"] as? String == "block")
    #expect(place((hang["callOut"] as? [String: Any])?["code"])?.file == "main.swift")
    #expect(functions(hang).contains { $0.contains("hangBeforeAnybodyLooks()") })
    // The level was restored.
    #expect(try runloop("ps", "\(victim.number)", "--json").json()["level"] as? String == "off")
  }

  @Test("long-waiting posts without a long call-out are reported as a backlog")
  func backlog() throws {
    let victim = try Victim(["backlog", "3"], program: "hang-victim", level: "off")
    let found = try hangs(runloop("hangs", "\(victim.number)", "--for", "300", "--threshold", "400", "--json"))
    let backlogs = found.filter { $0["class"] as? String == "backlog" }
    #expect(backlogs.count >= 1)
    #expect(backlogs.first?["callOut"] is NSNull)
    #expect(backlogs.first?["end"] is Int)
  }

  @Test("if the target is killed, the command ends and prints what it has seen")
  func killed() throws {
    // On a busy machine a single look may take long.
    var (found, seconds) = ([[String: Any]](), 1)
    repeat {
      let victim = try Victim(["hang"], level: "off")
      let (number, patience) = (victim.number, UInt32(seconds))
      let killer = Foundation.Thread {
        sleep(patience)
        kill(number, SIGKILL)
      }
      killer.start()
      let session = runloop("hangs", "\(number)", "--for", "300", "--json")
      #expect(session.status == 0)
      found = try hangs(session)
      seconds *= 2
    } while found.isEmpty && seconds < 100
    let hang = try #require(found.first)
    #expect(hang["thread"] as? String == "importer")
    #expect(hang["end"] is NSNull)
  }

  @Test("the command ends if another program replaces the target")
  func exec() throws {
    let victim = try Victim(["exec"], program: "hang-victim", level: "off")
    let session = runloop("hangs", "\(victim.number)", "--for", "300", "--json")
    #expect(session.status == 0)
    #expect(try hangs(session).isEmpty)
    // The kernel shows the new program before its environment, which names the directory of the records.
    waitUntil { FileManager.default.contents(atPath: "/proc/\(victim.number)/environ")?.isEmpty == false }
    // The old file still exists. No command may show its loops, or report that they are well.
    let commands = [
      ["ps"], ["hangs", "--for", "1"], ["why-alive"], ["dump"],
      ["trace", "--for", "0.1", "--output", "/tmp/never.html"],
    ]
    for arguments in commands {
      let late = runloop([arguments[0], "\(victim.number)"] + arguments.dropFirst())
      #expect(late.status == 1, "\(arguments)")
      #expect(
        late.complaints.count == 1 && late.complaints[0].contains("has executed another program"),
        "\(arguments): \(late.complaints)")
      #expect(late.output.isEmpty, "\(arguments)")
    }
  }

  @Test("--follow prints a hang as a line when it ends")
  func follow() throws {
    // On a busy machine a hang may be over before the first look.
    var (document, seconds) = ([String: Any](), 0.8)
    repeat {
      let victim = try Victim(["hangs", "\(seconds)"], program: "hang-victim", level: "off")
      let session = runloop("hangs", "\(victim.number)", "--follow", "--json", "--thread", "read")
      #expect(session.status == 0)
      if !session.output.isEmpty { document = try session.json() }
      seconds *= 2
    } while document.isEmpty && seconds < 30
    #expect(document["thread"] as? String == "read")
    #expect(document["end"] is Int)
  }

  @Test("a target that cannot be inspected is reported in one sentence with status 1, wrong arguments with 2")
  func refusals() throws {
    let none = try Victim(["none"])
    for number in ["\(none.number)", "\(Int32.max)"] {
      let session = runloop("hangs", number, "--for", "1")
      #expect(session.status == 1)
      #expect(session.complaints.count == 1)
      #expect(session.output.isEmpty)
    }
    for arguments in [[], ["x"], ["1", "--for", "x"], ["1", "--for", "1", "--follow"], ["1", "--threshold", "-1"]] {
      #expect(runloop(["hangs"] + arguments).status == 2, "\(arguments)")
    }
  }
}

@Suite("HangWatch", .ownThread) struct HangWatchTests {
  @Test("a process finds its own hangs with stacks, without interrupting its blocking calls")
  func watched() throws {
    var found: [String: [Substring]] = [:]
    var over: Set<Substring> = []
    // On a busy machine some hangs may end before the watch looks at them, and a computing thread may get no
    // processor on which to report its stack.
    func depth(_ name: String) -> Int { found[name].flatMap { Int($0[5]) } ?? 0 }
    var seconds = 6
    repeat {
      (found, over) = ([:], [])
      let victim = try Victim(["watched", "\(seconds)"], program: "hang-victim", level: "off")
      while true {
        let line = try victim.line()
        let words = line.split(separator: " ")
        if words[0] == "interrupted" {
          #expect(line == "interrupted 0")
          break
        }
        if words[0] == "found" { found[String(words[1])] = words }
        if words[0] == "over" { over.insert(words[1]) }
      }
      seconds *= 2
    } while seconds < 100
      && (found.count < 13 || !over.isSuperset(of: ["read", "lock", "observer", "job"]) || depth("compute") < 2)
    for (name, call) in [("read", "read"), ("lock", "futex"), ("observer", "recvfrom"), ("job", "clock_nanosleep")] {
      let words = try #require(found[name])
      #expect(words[3] == "blocked")
      #expect(words[4] == call)
      #expect((Int(words[5]) ?? 0) >= 3, "\(words)")
      #expect(words[6].hasPrefix("libc"), "\(words)")
      #expect(words[7] == "code")
      #expect(over.contains(Substring(name)))
    }
    #expect(found.count >= 13)
    #expect(found["read"]?[8] == "posted")
    #expect(depth("compute") >= 2)
  }

  @Test("the hang watch of an idle process does not wake up")
  func idle() throws {
    let victim = try Victim(["idle"], program: "hang-victim", level: "off")
    // It parks after two looks, which a busy machine may delay. A watch that does not park wakes in each interval.
    var hasWoken = true
    for _ in 0..<10 where hasWoken {
      let before = try switches(victim.number)
      usleep(3_000_000)
      hasWoken = try switches(victim.number) != before
    }
    #expect(!hasWoken)
  }

  private func switches(_ process: Int32) throws -> Int {
    let threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")
    return try threads.reduce(0) { sum, thread in
      let text = try String(contentsOfFile: "/proc/\(process)/task/\(thread)/status", encoding: .utf8)
      let line = text.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches") }
      return sum + (line?.split(separator: "\t").last.flatMap { Int($0) } ?? 0)
    }
  }
}
