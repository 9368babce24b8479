// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSystemEvents

/// Starts a child that leaves orphans, each with an exit code, and reaps the child itself.
///
/// The orphans end when this process closes the pipe.
private func leaveOrphans(_ codes: [Int32], until pipe: (read: Int32, write: Int32)) {
  let child = forkProcess()
  guard child == 0 else {
    waitpid(child, nil, 0)
    return
  }
  for code in codes where forkProcess() == 0 {
    close(pipe.write)
    var byte: UInt8 = 0
    _ = read(pipe.read, &byte, 1)
    _exit(code)
  }
  _exit(0)
}

private func pipeEnds() -> (read: Int32, write: Int32) {
  var ends: [Int32] = [0, 0]
  return crl_pipe(&ends) == 0 ? (ends[0], ends[1]) : (-1, -1)
}

/// Returns the numbers in a `children` file of `/proc`.
private func childNumbers(_ path: String) -> [Int32] {
  let file = open(path, O_RDONLY | O_CLOEXEC)
  guard file >= 0 else { return [] }
  defer { close(file) }
  var bytes = [UInt8](repeating: 0, count: 4096)
  let count = max(0, read(file, &bytes, bytes.count))
  return String(decoding: bytes[..<count], as: UTF8.self).split(whereSeparator: \.isWhitespace).compactMap { Int32($0) }
}

@Suite("Orphans that a process adopts", .timeLimit(.minutes(20)), .disabled(if: isSanitizedForThreads))
struct OrphanReaperTests {
  @Test("orphans are reaped with their statuses, and other children are left alone")
  func reaping() async {
    await #expect(processExitsWith: .success) {
      let end = inForkedChild {
        let loop = RunLoop.current
        let codes = Box<[Int32]>([])
        // Only the loop keeps the reaper alive.
        try loop.add(
          OrphanReaper(grace: .milliseconds(1), adoptsOrphans: true) { orphan in
            if case .exited(let code) = orphan.status { codes.value.append(code) }
            if codes.value.count == 5 { loop.stop() }
          }, forMode: .default)
        // A child that a source waits for, which is in no loop yet.
        let own = forkProcess()
        if own == 0 { _exit(7) }
        let source = try ChildProcessSource(process: own) { _, end in
          if end == .ended(.exited(code: 7)) { codes.value.append(100) }
          loop.stop()
        }
        let pipe = pipeEnds()
        leaveOrphans([1, 2, 3, 4, 5], until: pipe)
        close(pipe.write)
        loop.runUntilStopped()
        guard codes.value.sorted() == [1, 2, 3, 4, 5] else { return 1 }
        try loop.add(source, forMode: .default)
        loop.runUntilStopped()
        guard codes.value.contains(100) else { return 2 }
        // No child is left.
        return waitpid(-1, nil, WNOHANG) == -1 && errno == ECHILD ? 0 : 3
      }
      #expect(end == .exited(0))
    }
  }

  @Test("a reaper that its handler invalidates reaps nothing more")
  func invalidatedByHandler() async {
    await #expect(processExitsWith: .success) {
      let end = inForkedChild {
        let loop = RunLoop.current
        for _ in 0..<3 {
          let child = forkProcess()
          if child == 0 { _exit(1) }
          awaitEnd(of: child)
        }
        let reaper = Box<OrphanReaper?>(nil)
        reaper.value = try OrphanReaper(grace: .zero) { _ in
          reaper.value?.invalidate()
          loop.stop()
        }
        if let reaper = reaper.value { try loop.add(reaper, forMode: .default) }
        loop.runUntilStopped()
        return (0..<2).allSatisfy { _ in waitpid(-1, nil, WNOHANG) > 0 } ? 0 : 1
      }
      #expect(end == .exited(0))
    }
  }

  @Test("an orphan that ends while no descriptor is left is reaped when there is one again")
  func withoutDescriptors() async {
    await #expect(processExitsWith: .success) {
      let end = inForkedChild {
        let loop = RunLoop.current
        let reaper = try OrphanReaper(grace: .zero, adoptsOrphans: true) { _ in loop.stop() }
        try loop.add(reaper, forMode: .default)
        let pipe = pipeEnds()
        leaveOrphans([4], until: pipe)
        while loop.run(mode: .default, for: .zero, returnAfterSourceHandled: true) == .handledSource {}
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        getrlimit(resource, &limit)
        let before = limit
        close(pipe.write)
        // No number below the lowest free one is free.
        limit.rlim_cur = rlim_t(dup(1))
        close(Int32(limit.rlim_cur))
        setrlimit(resource, &limit)
        while loop.run(mode: .default, for: .seconds(10), returnAfterSourceHandled: true) != .handledSource {}
        setrlimit(resource, [before])
        return loop.run(mode: .default, for: .seconds(100)) == .stopped ? 0 : 1
      }
      #expect(end == .exited(0))
    }
  }

  @Test("a child that other code has registered is left to it")
  func leaving() async {
    await #expect(processExitsWith: .success) {
      let end = inForkedChild {
        let loop = RunLoop.current
        let theirs = forkProcess()
        if theirs == 0 { _exit(9) }
        let reaped = Box<[Int32]>([])
        let reaper = try OrphanReaper(grace: .milliseconds(1), adoptsOrphans: true) { orphan in
          reaped.value.append(orphan.process)
        } leaving: { process in
          if process == theirs { loop.stop() }
          return process == theirs
        }
        try loop.add(reaper, forMode: .default)
        loop.runUntilStopped()
        return reaped.value.isEmpty && ForkedEnd(waitingFor: theirs) == .exited(9) ? 0 : 1
      }
      #expect(end == .exited(0))
    }
  }

  @Test("remaining children are checked once, and again when another child ends")
  func askedAgain() async {
    await #expect(processExitsWith: .success) {
      let end = inForkedChild {
        let loop = RunLoop.current
        // More than the reaper keeps at a time. They end before it is created, so it gets no signal for them.
        var theirs: Set<Int32> = []
        for _ in 0..<70 {
          let child = forkProcess()
          if child == 0 { _exit(9) }
          awaitEnd(of: child)
          theirs.insert(child)
        }
        let left = theirs
        let asked = Box(0)
        let codes = Box<[Int32]>([])
        let reaper = try OrphanReaper(grace: .zero, adoptsOrphans: true) { orphan in
          if case .exited(let code) = orphan.status { codes.value.append(code) }
          loop.stop()
        } leaving: { process in
          guard left.contains(process) else { return false }
          asked.value += 1
          return true
        }
        try loop.add(reaper, forMode: .default)
        while asked.value < 70 { loop.run(mode: .default, for: .seconds(1)) }
        for _ in 0..<20 { loop.run(mode: .default, for: .zero) }
        guard asked.value == 70 else { return 1 }
        let pipe = pipeEnds()
        leaveOrphans([3], until: pipe)
        close(pipe.write)
        loop.runUntilStopped()
        guard codes.value == [3], asked.value >= 140 else { return 2 }
        return left.allSatisfy { ForkedEnd(waitingFor: $0) == .exited(9) } ? 0 : 3
      }
      #expect(end == .exited(0))
    }
  }

  @Test("a child seen as another thread's is left alone after that thread has ended")
  func endedThread() async {
    await #expect(processExitsWith: .success) {
      let end = inForkedChild {
        let first = "/proc/self/task/\(getpid())/children"
        // Some kernels do not report which thread has a child.
        guard access(first, R_OK) == 0 else { return 0 }
        let loop = RunLoop.current
        let codes = Box<[Int32]>([])
        let reaper = try OrphanReaper(grace: .zero, adoptsOrphans: true) { orphan in
          if case .exited(let code) = orphan.status { codes.value.append(code) }
          if codes.value.contains(3) { loop.stop() }
        }
        let (childGate, threadGate, started) = (pipeEnds(), pipeEnds(), pipeEnds())
        let theirs = Box<Int32>(0)
        let thread = startThread { () -> Bool in
          var byte: UInt8 = 0
          let child = forkProcess()
          if child == 0 {
            close(childGate.write)
            _ = read(childGate.read, &byte, 1)
            _exit(9)
          }
          theirs.value = child
          return write(started.write, &byte, 1) == 1 && read(threadGate.read, &byte, 1) == 1
        }
        var byte: UInt8 = 0
        guard read(started.read, &byte, 1) == 1 else { return 1 }
        // The reaper looks in the first pass, when the child still belongs to the other thread.
        try loop.add(reaper, forMode: .default)
        loop.run(mode: .default, for: .zero)
        guard write(threadGate.write, &byte, 1) == 1, thread.result() else { return 2 }
        // The kernel reparents the child shortly after the thread can be joined.
        while !childNumbers(first).contains(theirs.value) { sched_yield() }
        close(childGate.write)
        awaitEnd(of: theirs.value)
        // An orphan that ends later is reaped, and by then the child would have been too.
        let pipe = pipeEnds()
        leaveOrphans([3], until: pipe)
        close(pipe.write)
        loop.runUntilStopped()
        return codes.value == [3] && ForkedEnd(waitingFor: theirs.value) == .exited(9) ? 0 : 3
      }
      #expect(end == .exited(0))
    }
  }

  @Test("more orphans than the reaper keeps at a time are all reaped")
  func many() async {
    await #expect(processExitsWith: .success) {
      let end = inForkedChild {
        let loop = RunLoop.current
        let count = Box(0)
        let reaper = try OrphanReaper(grace: .milliseconds(1), adoptsOrphans: true) { _ in
          count.value += 1
          if count.value == 150 { loop.stop() }
        }
        let pipe = pipeEnds()
        leaveOrphans(Array(repeating: 0, count: 150), until: pipe)
        close(pipe.write)
        try loop.add(reaper, forMode: .default)
        loop.runUntilStopped()
        reaper.invalidate()
        return count.value == 150 && !reaper.isValid ? 0 : 1
      }
      #expect(end == .exited(0))
    }
  }
}
