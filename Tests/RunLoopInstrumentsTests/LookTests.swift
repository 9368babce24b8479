// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem
import Foundation
import Testing

@testable import RunLoopInstruments
@testable import RunLoopToolKit

private final class OneFace: LoopFaces {
  var shown = crl_face()
  let faceCount = 1
  func face(_ slot: Int) -> crl_face { shown }
  func record(_ number: UInt64, of slot: Int) -> crl_record? { nil }
  func post(_ sequence: UInt64, of slot: Int) -> crl_post? { nil }
  func name(_ slot: Int) -> String { "reader" }
  func mode(_ index: UInt8) -> String? { nil }
  func lateService(_ slot: Int) -> LateService? { nil }
  func nanoseconds(_ ticks: UInt64) -> Int64 { 0 }
}

@Suite("Limits of a look", .ownThread) struct LookTests {
  private func lines(
    _ ending: LookSummary.Ending, found: Int = 0, unseen: Int = 0, loops: Int = 1, host: crl_host? = nil,
    isLate: Bool = false
  ) -> [String] {
    let faces = OneFace()
    if loops > 0 {
      faces.shown.thread = 5
      faces.shown.loop = 7
    }
    if let host {
      faces.shown.flags = UInt8(CRL_FACE_HOSTED | CRL_FACE_SLEEPS)
      faces.shown.host = host.rawValue
    }
    let scout = HangScout(process: getpid(), faces: faces, settings: .init(threshold: 250_000_000))
    _ = scout.look(at: 1)
    var look = LookSummary(at: 1_000_000_000)
    look.end = 3_000_000_000
    look.ending = ending
    look.note(scout, unseen: unseen)
    if isLate {
      let item = Lateness.Item(thread: 5, code: 0, late: 1, isDescriptor: false)
      look.late = [LateReport(found: item, thread: "reader", code: nil)]
    }
    return look.lines(4711, found: found, isAll: true)
  }

  @Test("only a look that saw all loops completely reports that none hung")
  func endings() {
    #expect(lines(.time) == ["No loop of process 4711 hung."])
    #expect(lines(.ended) == ["Process 4711 has ended, 2.0 s after the look began; until then no loop had hung."])
    #expect(lines(.executed)[0].hasPrefix("Process 4711 has become another program"))
    #expect(lines(.time, found: 1) == [])
    #expect(lines(.ended, found: 1) == ["Process 4711 has ended, 2.0 s after the look began."])
    #expect(lines(.time, unseen: 3)[0] == "No loop of process 4711 hung that could be seen.")
    #expect(lines(.time, found: 1, unseen: 3) == ["3 loops could not be looked at: the process has more than 2048."])
    #expect(lines(.time, loops: 0).last == "It had no loop to look at.")
    #expect(!lines(.time, isLate: true).contains { $0.contains("hung") })
  }

  @Test("a look says what it cannot see of a loop that another one serves")
  func silentHosts() {
    #expect(lines(.time, host: CRL_HOST_GLIB).count == 1)
    let libuv = lines(.time, host: CRL_HOST_LIBUV)
    #expect(libuv.first == "No loop of process 4711 hung that could be seen.")
    #expect(libuv.last == "What libuv runs on reader, besides the loop, cannot be seen.")
    let program = lines(.time, host: CRL_HOST_PROGRAM)
    #expect(program.last == "What the program's own loop runs on reader, besides the loop, cannot be seen.")
  }

  @Test("a look at a stopped process reports that it is stopped, and is not an all-clear")
  func stoppedProcess() throws {
    let victim = try Victim(["idle"], level: "off")
    kill(victim.number, SIGSTOP)
    while try !TargetProcess(victim.number).isStopped { usleep(1000) }
    let text = runloop("hangs", "\(victim.number)", "--for", "0.3", "--exit-code")
    #expect(text.status == 4)
    #expect(text.output.contains("hung that could be seen"), "\(text.output)")
    #expect(text.output.contains("1 of 1 loops was stopped by a signal or a debugger"), "\(text.output)")
    let document = try runloop("hangs", "\(victim.number)", "--for", "0.3", "--json").json()
    #expect((document["look"] as? [String: Any])?["stopped"] as? Int == 1)
    let doctor = runloop("doctor", "\(victim.number)", "--for", "0.3")
    #expect(doctor.output.contains("STOPPED  1 of 1 loops"), "\(doctor.output)")
    #expect(!doctor.output.contains("Nothing is wrong") && !doctor.output.contains("no agent"), "\(doctor.output)")
    kill(victim.number, SIGCONT)
    while try TargetProcess(victim.number).isStopped { usleep(1000) }
    #expect(runloop("hangs", "\(victim.number)", "--for", "0.3", "--exit-code").status == 0)
  }

  @Test("naming a thread without a loop is an error, also for top")
  func unknownThread() throws {
    let victim = try Victim(["idle"], level: "off")
    for command in [["hangs", "--for", "1"], ["ps"], ["top"]] {
      let session = runloop([command[0], "\(victim.number)", "--thread", "nosuch"] + command.dropFirst())
      #expect(session.status == 1, "\(command)")
      #expect(session.complaints.first?.contains("no run loop on a thread named \"nosuch\"") == true, "\(command)")
    }
  }

  @Test("a tool sees more loops than an earlier layout had room for")
  func many() throws {
    let victim = try Victim(["loops", "300"], level: "off")
    let document = try runloop("hangs", "\(victim.number)", "--for", "0.2", "--json").json()
    let look = try #require(document["look"] as? [String: Any])
    #expect(look["loops"] as? Int == 300)
    #expect(look["unseen"] as? Int == 0)
    #expect(look["ending"] as? String == "time")
    let loops = try runloop("ps", "\(victim.number)", "--json").json()["loops"] as? [Any]
    #expect(loops?.count == 300)
  }

  @Test("a descriptor without a reader is reported while its loop does not sleep")
  func unread() {
    let faces = OneFace()
    (faces.shown.thread, faces.shown.loop, faces.shown.depth) = (getpid(), 7, 1)
    (faces.shown.unread, faces.shown.unread_code) = (10, 0x1234)
    let scout = HangScout(process: getpid(), faces: faces, settings: .init(threshold: 250_000_000))
    for time in 1...9 { _ = scout.look(at: Int64(time) * 1_000_000) }
    #expect(scout.unread.isEmpty)
    _ = scout.look(at: 10_000_000)
    #expect(scout.unread == [HangScout.Unread(thread: getpid(), descriptor: 9, code: 0x1234)])
    // It sleeps, so something was read meanwhile.
    faces.shown.flags = UInt8(CRL_FACE_SLEEPS)
    _ = scout.look(at: 11_000_000)
    #expect(scout.unread.isEmpty)
  }

  @Test("a process that is stopped does not hang")
  func stopped() throws {
    let victim = try Victim(["hang"], level: "off")
    kill(victim.number, SIGSTOP)
    defer { kill(victim.number, SIGCONT) }
    while ThreadState(thread: victim.number, of: victim.number) != .stopped { usleep(1000) }
    #expect(runloop("ps", "\(victim.number)").output.contains("stopped"))
    let loops = try runloop("ps", "\(victim.number)", "--json").json()["loops"] as? [[String: Any]]
    #expect(loops?.allSatisfy { $0["state"] as? String != "hung" } == true)
  }

  @Test("the number of a thread within its namespace is the last")
  func numbers() {
    #expect(ThreadNumbers.inner(of: "/proc/self/status") == getpid())
    #expect(ThreadNumbers(of: getpid()).outer(getpid()) == getpid())
    #expect(ThreadNumbers(of: getpid()).outer(0) == 0)
  }

  @Test("looking up dead thread numbers reads the kernel's files at most once per refresh")
  func goneNumbers() {
    let numbers = ThreadNumbers(of: getpid())
    let gone = (Int32.max - 100)..<Int32.max
    for number in gone { #expect(numbers.outer(number) == number) }
    #expect(numbers.outer(getpid()) == getpid())
    #expect(numbers.reads == 1)
    // Threads asked for after that read may have started since.
    numbers.refresh()
    for number in gone { #expect(numbers.outer(number) == number) }
    #expect(numbers.reads == 2)
    for _ in 0..<10 {
      numbers.refresh()
      for number in gone { #expect(numbers.outer(number) == number) }
    }
    #expect(numbers.reads == 2)
  }

  @Test("--wait waits for a process's first loop, until the process ends")
  func wait() throws {
    let victim = try Victim(["none"], level: "off")
    let withoutWait = runloop("hangs", "\(victim.number)", "--for", "1")
    #expect(withoutWait.status == 1)
    let number = victim.number
    let killer = Foundation.Thread {
      // Long enough for a tool that ignores --wait to report another error.
      usleep(300_000)
      kill(number, SIGKILL)
    }
    killer.start()
    let withWait = runloop("hangs", "\(number)", "--wait", "--for", "1")
    #expect(withWait.status == 1)
    #expect(withWait.complaints != withoutWait.complaints)
  }

  @Test("a call-out that began before the first look has lasted at least as long as the look, and a later one has not")
  func older() {
    func look(_ number: UInt64) -> HangJudge.Look {
      .init(slot: 0, callOut: .init(number: number), isAsleep: false)
    }
    var judge = HangJudge(.init(threshold: 100, tolerance: 1000))
    _ = judge.judge([look(1)], at: 1000)
    #expect(judge.isOlder(0))
    _ = judge.judge([look(1)], at: 1200)
    #expect(judge.isOlder(0))
    _ = judge.judge([look(2)], at: 1300)
    #expect(!judge.isOlder(0))
    #expect(!judge.isOlder(1))
  }
}

@Suite("The clock of records", .ownThread) struct RecordClockTests {
  @Test("a process that starts recording after its file was opened gets its clock from its first record")
  func late() throws {
    let victim = try Victim(["wakes"], level: "off")
    let faces = FileFaces(try TargetProcess(victim.number).openRecords())
    let file = try TargetProcess(victim.number).openRecords()
    #expect(!file.clock.isKnown)
    let hold = try LevelHold(file, CRL_RECORD.rawValue)
    defer { hold.release() }
    var record: crl_record?
    while record == nil {
      record = (0..<file.faceCount).compactMap { file.records($0).records.first }.first
    }
    let begin = try faces.nanoseconds(#require(record).begin)
    #expect(abs(crl_monotonic_nanoseconds() - begin) < 600_000_000_000)
  }
}
