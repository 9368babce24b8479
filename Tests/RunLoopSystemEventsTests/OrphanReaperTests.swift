// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSystemEvents

/// Starts a child that leaves orphans, each of which ends with a code, and reaps the child itself.
///
/// The orphans end when the pipe is closed here.
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

@Suite("Orphans that a process adopts", .timeLimit(.minutes(20)))
struct OrphanReaperTests {
  @Test("they are reaped, each with its end, and children of others are left alone")
  func reaping() {
    let end = inForkedChild {
      let loop = RunLoop.current
      let codes = Box<[Int32]>([])
      // The loop alone holds it.
      try loop.add(
        OrphanReaper(grace: .milliseconds(1), adoptsOrphans: true) { orphan in
          if case .exited(let code) = orphan.status { codes.value.append(code) }
          if codes.value.count == 5 { loop.stop() }
        }, forMode: .default)
      // One that a source waits for, which is in no loop yet.
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

  @Test("a child that other code has named is left to it")
  func leaving() {
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

  @Test("more orphans than are kept at a time are all reaped")
  func many() {
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
