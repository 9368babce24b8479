// SPDX-License-Identifier: Apache-2.0

import struct Foundation.Data
import class Foundation.Pipe
import class Foundation.Process
import struct Foundation.URL
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSystemEvents

@Suite("Child processes beside Foundation's", .timeLimit(.minutes(20)))
struct ChildProcessFoundationTests {
  @Test("Foundation's processes get their statuses although sources watch them without reaping")
  func statuses() throws {
    let (thread, loop) = SourceRig.startLoop()
    for round in 0..<30 {
      let process = Process()
      process.executableURL = URL(fileURLWithPath: "/bin/sh")
      process.arguments = ["-c", "read line; exit \(round + 1)"]
      let input = Pipe()
      process.standardInput = input
      try process.start()
      let ends = Notes<ChildProcessSource.End>()
      let source = try ChildProcessSource(process: process.processIdentifier, leavesStatus: true) { ends.add($1) }
      try loop.add(source, forMode: .default)
      input.fileHandleForWriting.write(Data([10]))
      process.waitUntilExit()
      #expect(process.terminationStatus == Int32(round + 1))
      waitUntil { ends.count == 1 }
      let lost = ChildProcessSource.End.unknown(.reapedElsewhere(process.processIdentifier))
      #expect(ends.all == [.ended(.exited(code: Int32(round + 1)))] || ends.all == [lost])
    }
    loop.stop()
    thread.join()
  }
}
