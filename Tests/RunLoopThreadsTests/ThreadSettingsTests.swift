// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

// L27, T10
@Suite("The settings of a thread", .timeLimit(.minutes(20)))
struct ThreadSettingsTests {
  @Test("a thread's stack is as large as requested")
  func stackSize() throws {
    let thread = Thread {
      // Half a megabyte of frames, on a stack of twice that size.
      #expect(useStack(512) == 512)
    }
    thread.stackSize = 1 << 20
    #expect(thread.stackSize == 1 << 20 && thread.configuration.stackSize == 1 << 20)
    thread.start()
    try thread.join()
    #expect(thread.rejections == [])
  }

  @Test("a stack size below the system's minimum counts as the minimum")
  func smallStack() throws {
    let log = Log()
    for size in [-1, 0, 1, 4096] {
      let thread = Thread { log.write("\(size)") }
      thread.stackSize = size
      try thread.tryStart()
      try thread.join()
    }
    #expect(log.text == "-1 0 1 4096")
  }

  @Test("niceness and processors of a thread are set")
  func accepted() throws {
    let niceness = Box<Int32>(0)
    let thread = Thread(name: nil, configuration: .init(niceness: 5, processors: [0])) {
      niceness.update { _ = crl_thread_get_niceness(RunLoop.callingThreadID, &$0) }
    }
    thread.start()
    try thread.join()
    #expect(niceness.value == 5 && thread.rejections == [])
  }

  @Test("nonexistent processors are rejected, which can be queried")
  func noSuchProcessor() throws {
    let log = Log()
    let thread = Thread(name: nil, configuration: .init(processors: [1023])) { log.write("ran") }
    thread.start()
    try thread.join()
    #expect(log.text == "ran" && thread.rejections == [.processors([1023], EINVAL)])
    #expect(thread.rejections.first.map { "\($0)" } == "the processors [1023]: Invalid argument (22)")
  }

  @Test("a niceness that needs a privilege is rejected with EPERM, or set if the privilege exists")
  func privilege() throws {
    let niceness = Box<Int32>(0)
    let thread = Thread(name: nil, configuration: .init(niceness: 19)) {
      Thread.current.configuration.niceness = -20
      niceness.update { _ = crl_thread_get_niceness(RunLoop.callingThreadID, &$0) }
    }
    thread.start()
    try thread.join()
    if thread.rejections == [] {
      #expect(niceness.value == -20)
    } else {
      #expect(thread.rejections == [.niceness(-20, EPERM)] || thread.rejections == [.niceness(-20, EACCES)])
      #expect(niceness.value == 19)
    }
  }

  @Test("a setting can change while the thread runs, and its rejection is reported then")
  func whileRunning() throws {
    let thread = Thread.running()
    try thread.performAndWait {}
    thread.configuration.processors = [1022]
    #expect(thread.rejections == [.processors([1022], EINVAL)])
    try thread.stopLoop()
  }
}

/// Uses a kilobyte of stack per step.
@inline(never)
private func useStack(_ depth: Int) -> Int {
  withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 8) { bytes in
    bytes.initializeMemory(as: UInt8.self, repeating: 1)
    return depth == 0 ? 0 : useStack(depth - 1) + Int(bytes[depth % 1024])
  }
}
