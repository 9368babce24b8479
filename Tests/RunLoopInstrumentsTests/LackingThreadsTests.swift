// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopInstruments
import TestSupport
import Testing

@Suite("A process that can start no more threads", .disabled(if: isSanitizedForThreads))
struct LackingThreadsTests {
  @Test("if no thread can be started, the watch says so, there is no watchdog, and neither holds a level")
  func memory() async {
    await #expect(processExitsWith: .success) {
      // There is enough memory for the objects, but not for a thread's stack.
      let stack = 4 << 20
      try limitMemory(toMore: stack)
      let watch = HangWatch(.init(level: .record)) { _ in }
      #expect(!watch.isWatching)
      #expect(ServiceWatchdog(socket: "@runloop-tests-nobody-\(getpid())", within: .seconds(1)) == nil)
      #expect(Instruments.level == .off)
      try limitMemory(toMore: 1 << 30)
      #expect(HangWatch { _ in }.isWatching)
    }
  }
}

/// Limits the process's memory to its current size and `bytes` more.
private func limitMemory(toMore bytes: Int) throws {
  let file = try #require(fopen("/proc/self/statm", "r"))
  defer { fclose(file) }
  var line = [CChar](repeating: 0, count: 256)
  try #require(fgets(&line, 256, file) != nil)
  let pages = try #require(Int(String(decoding: line.prefix { $0 >= 48 }.map(UInt8.init(bitPattern:)), as: UTF8.self)))
  var limit = rlimit()
  getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
  limit.rlim_cur = rlim_t(pages * Int(sysconf(Int32(_SC_PAGESIZE))) + bytes)
  try #require(setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0)
}
