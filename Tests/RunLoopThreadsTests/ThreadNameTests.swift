// SPDX-License-Identifier: Apache-2.0

import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

// L23
@Suite("The name of a thread", .timeLimit(.minutes(20)))
struct ThreadNameTests {
  @Test(
    "a name set before the start is kept in full, and the kernel gets what fits",
    arguments: [
      ("worker", "worker"), ("exactly 15 byte", "exactly 15 byte"), ("a name of 16 byt", "a name of 16 by"),
      ("ääääääää", "äääääää"), ("fifteen bytes é", "fifteen bytes "),
      ("family 👨‍👩‍👧", "family "),
    ])
  func beforeStart(name: String, kept: String) throws {
    let system = Box<String?>(nil)
    let thread = Thread { system.value = System.name(ofThread: RunLoop.callingThreadID) }
    thread.name = name
    #expect(thread.name == name)
    thread.start()
    try thread.join()
    #expect(system.value == kept)
    #expect(thread.name == name && thread.rejections == [])
  }

  // L26
  @Test("a name may be set and read from any thread while the thread runs, and after it has ended")
  func fromOutside() throws {
    let thread = Thread.running(name: "before")
    let id = try thread.performAndWait { RunLoop.callingThreadID }
    #expect(System.name(ofThread: id) == "before")
    thread.name = "after, and longer"
    #expect(System.name(ofThread: id) == "after, and long")
    let seen = try thread.performAndWait { Thread.current.name }
    #expect(seen == "after, and longer")
    #expect(thread.name == "after, and longer")
    try thread.stopLoop()
    thread.name = "at last"
    #expect(thread.name == "at last" && thread.rejections == [])
  }

  @Test("each thread has its own name, and asking for it does not affect the caller's")
  func own() throws {
    let first = Thread.running(name: "first")
    let second = Thread.running(name: "second")
    let seen = try first.performAndWait { second.name }
    #expect(seen == "second" && first.name == "first" && Thread().name == nil)
    try first.stopLoop()
    try second.stopLoop()
  }
}
