// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSystemEvents

@Suite("Child processes", .timeLimit(.minutes(20)))
struct ChildProcessTests {
  typealias End = ChildProcessSource.End

  /// Returns the ends that a source reports for a child.
  private func end(_ process: pid_t, _ act: @escaping @Sendable () -> Void = {}) -> [End] {
    let ends = Notes<End>()
    SourceRig.onThread { loop in
      do {
        let source = try ChildProcessSource(process: process) { source, end in
          #expect(!source.isValid)
          ends.add(end)
        }
        try loop.add(source, forMode: .default)
        act()
        loop.run { ends.count > 0 }
      } catch {
        Issue.record(error)
      }
    }
    return ends.all
  }

  @Test("the end of a child is reported once, and the child is reaped")
  func exits() {
    let first = spawn("/bin/true")
    #expect(end(first) == [.ended(.exited(code: 0))])
    #expect(reap(first) == nil)
    #expect(end(spawn("/bin/sh", "-c", "exit 3")) == [.ended(.exited(code: 3))])
    #expect(end(spawn("/bin/sh", "-c", "exit 255")) == [.ended(.exited(code: 255))])
  }

  @Test("a child that is killed by a signal is reported with the signal")
  func signalled() {
    let child = spawn("/bin/sleep", "1000")
    #expect(end(child) { kill(child, SIGKILL) } == [.ended(.signalled(signal: SIGKILL, coreDumped: false))])
    let other = spawn("/bin/sh", "-c", "ulimit -c 0; kill -ABRT $$")
    #expect(end(other) == [.ended(.signalled(signal: SIGABRT, coreDumped: false))])
  }

  @Test("a child that has ended before the source was created is reported as well")
  func endedBefore() {
    let child = spawn("/bin/sh", "-c", "exit 9")
    awaitEnd(of: child)
    #expect(end(child) == [.ended(.exited(code: 9))])
  }

  @Test("a child that other code has reaped ends the source with an error")
  func reapedElsewhere() {
    let child = spawn("/bin/sleep", "1000")
    let ends = end(child) {
      kill(child, SIGTERM)
      #expect(reap(child) != nil)
    }
    #expect(ends == [.unknown(.reapedElsewhere(child))])
  }

  @Test("a process that is not a child to wait for is rejected")
  func rejected() {
    let gone = spawn("/bin/true")
    #expect(reap(gone) == 0)
    for process in [gone, 0, -1, .min] {
      #expect(throws: ChildProcessError.noSuchProcess(process)) { try ChildProcessSource(process: process) { _, _ in } }
    }
    #expect(throws: ChildProcessError.notAChild(1)) { try ChildProcessSource(process: 1) { _, _ in } }
    #expect(throws: ChildProcessError.notAChild(getpid())) { try ChildProcessSource(process: getpid()) { _, _ in } }
  }

  @Test("all sources of a child report its end, in their modes")
  func several() {
    SourceRig.onThread { loop in
      let names = Notes<String>()
      let child = spawn("/bin/sh", "-c", "exit 4")
      do {
        for name in ["a", "b", "c"] {
          let source = try ChildProcessSource(process: child) { _, end in names.add("\(name) \(end)") }
          try loop.add(source, forMode: name == "c" ? "other" : .default)
          if name == "b" { try loop.add(source, forMode: "other") }
        }
        loop.run { names.count == 2 }
        loop.run("other") { names.count == 3 }
        #expect(names.all.map { $0.prefix(1) }.sorted() == ["a", "b", "c"])
        #expect(names.all.allSatisfy { $0.hasSuffix(" exited with 4") })
      } catch {
        Issue.record(error)
      }
    }
  }

  @Test("an invalid source, and one in no mode, do not reap the child")
  func invalid() throws {
    let log = Notes<String>()
    let child = spawn("/bin/sh", "-c", "exit 5")
    let source: ChildProcessSource
    do {
      let probe = Token { log.add("released") }
      source = try ChildProcessSource(process: child) { _, _ in probe.touch() }
    }
    awaitEnd(of: child)
    source.invalidate()
    #expect(log.all == ["released"] && !source.isValid)
    #expect(source.debugDescription.hasSuffix("{valid = No, version = 1, process = \(child)}"))
    SourceRig.onThread { loop in
      #expect(throws: RunLoopError.invalidSource) { try loop.add(source, forMode: .default) }
    }
    #expect(reap(child) == 5 << 8)
  }

  @Test("two hundred children are each reaped once while the program waits for others")
  func many() {
    let own = SourceRig.start {
      for number in 0..<100 {
        let code = Int32(number % 50)
        if reap(spawn("/bin/sh", "-c", "exit \(code)")) != code << 8 { Issue.record("another's child was reaped") }
      }
    }
    SourceRig.onThread { loop in
      let ends = Notes<(Int, End)>()
      do {
        for round in 0..<10 {
          for place in 0..<20 {
            let number = round * 20 + place
            let child = spawn("/bin/sh", "-c", "exit \(number)")
            try loop.add(ChildProcessSource(process: child) { _, end in ends.add((number, end)) }, forMode: .default)
          }
          loop.run { ends.count == (round + 1) * 20 }
        }
      } catch {
        Issue.record(error)
      }
      #expect(ends.all.map(\.0).sorted() == Array(0..<200))
      #expect(ends.all.allSatisfy { $0.1 == .ended(.exited(code: Int32($0.0))) })
    }
    own.join()
  }

  @Test("a source that leaves the status does not reap the child")
  func leaves() throws {
    let child = spawn("/bin/sh", "-c", "exit 8")
    SourceRig.onThread { loop in
      let ends = Notes<End>()
      do {
        for _ in 0..<2 {
          let source = try ChildProcessSource(process: child, leavesStatus: true) { _, end in ends.add(end) }
          try loop.add(source, forMode: .default)
        }
        loop.run { ends.count == 2 }
        // A source created later, and one that reaps, receive the status too.
        try loop.add(ChildProcessSource(process: child, leavesStatus: true) { ends.add($1) }, forMode: .default)
        loop.run { ends.count == 3 }
      } catch { Issue.record(error) }
      #expect(ends.all == Array(repeating: .ended(.exited(code: 8)), count: 3))
    }
    #expect(reap(child) == 8 << 8)
    #expect(throws: ChildProcessError.noSuchProcess(child)) {
      try ChildProcessSource(process: child, leavesStatus: true) { _, _ in }
    }
  }

  @Test("if one of two sources leaves the status, both report the end, and the child is reaped once")
  func leavesAndReaps() {
    for leavesFirst in [true, false] {
      SourceRig.onThread { loop in
        let child = spawn("/bin/sh", "-c", "exit 9")
        let ends = Notes<End>()
        do {
          for leaves in [leavesFirst, !leavesFirst] {
            let source = try ChildProcessSource(process: child, leavesStatus: leaves) { _, end in ends.add(end) }
            try loop.add(source, forMode: .default)
          }
          loop.run { ends.count == 2 }
        } catch { Issue.record(error) }
        #expect(ends.all == Array(repeating: .ended(.exited(code: 9)), count: 2))
        #expect(reap(child) == nil)
      }
    }
  }

  @Test("the end of a child is a sequence of one element")
  func sequence() async throws {
    let (thread, loop) = SourceRig.startLoop()
    var ends: [End] = []
    for await end in try ChildProcessSource.events(of: spawn("/bin/sh", "-c", "exit 6"), on: loop) { ends.append(end) }
    #expect(ends == [.ended(.exited(code: 6))])
    let child = spawn("/bin/sleep", "1000")
    let waiting = try ChildProcessSource.events(of: child, on: loop)
    loop.stop()
    thread.join()
    for await _ in waiting { Issue.record("it has not ended") }
    kill(child, SIGKILL)
    #expect(reap(child) == SIGKILL)
  }

  @Test("the descriptors of a child's sources are closed")
  func descriptors() async {
    await #expect(processExitsWith: .success) {
      let before = DescriptorCensus()
      SourceRig.onThread { loop in
        let ends = Notes<End>()
        do {
          for _ in 0..<20 {
            let child = spawn("/bin/true")
            for _ in 0..<2 { try loop.add(ChildProcessSource(process: child) { ends.add($1) }, forMode: .default) }
          }
          #expect(DescriptorCensus().count("pidfd") == 20)
          while ends.count < 40 { loop.run(mode: .default, for: .unlimited, returnAfterSourceHandled: true) }
          #expect(DescriptorCensus().count("pidfd") == 0)
        } catch {
          Issue.record(error)
        }
      }
      let after = DescriptorCensus()
      #expect(before.isFollowed(by: after), "\(before), then \(after)")
    }
  }
}

#if DEBUG
  @Suite("Child processes when system calls fail", .timeLimit(.minutes(20)))
  struct ChildProcessFaultTests {
    @Test(
      "a source that cannot be created names the call", arguments: [SystemCall.processDescriptor, .processWait])
    func make(call: SystemCall) {
      let child = spawn("/bin/true")
      let plan = FaultPlan()
      plan.plan(call, .fails(EMFILE))
      plan.rule {
        let error = SystemError(call: call.rawValue, number: EMFILE)
        #expect(throws: ChildProcessError.system(child, error)) {
          _ = try ChildProcessSource(process: child) { _, _ in }
        }
      }
      #expect(plan.isUsedUp)
      #expect(reap(child) == 0)
    }

    @Test("an end that cannot be read is an error of all sources, and an interrupt is not")
    func wait() {
      SourceRig.onThread { loop in
        let child = spawn("/bin/true")
        let ends = Notes<ChildProcessSource.End>()
        let plan = FaultPlan()
        do {
          for _ in 0..<2 { try loop.add(ChildProcessSource(process: child) { ends.add($1) }, forMode: .default) }
          plan.plan(.processWait, .fails(EINTR), .fails(EINVAL))
          plan.rule { loop.run { ends.count == 2 } }
          let error = ChildProcessError.system(child, SystemError(call: "waitid", number: EINVAL))
          #expect(plan.isUsedUp && ends.all == [.unknown(error), .unknown(error)])
        } catch {
          Issue.record(error)
        }
        #expect(reap(child) == 0)
      }
    }
  }
#endif
