// SPDX-License-Identifier: Apache-2.0

import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

// T5
@Suite("Threads that wait for each other", .timeLimit(.minutes(20)))
struct DeadlockTests {
  @Test("a cycle of two waiting threads is rejected with both names, and the threads continue")
  func two() throws {
    let a = Thread.running(name: "a")
    let b = Thread.running(name: "b")
    #expect(throws: ThreadError.wouldDeadlock(cycle: ["thread \"b\"", "thread \"a\"", "thread \"b\""])) {
      try a.performAndWait { try b.performAndWait { try a.performAndWait {} } }
    }
    #expect(try a.performAndWait { try b.performAndWait { 1 } } == 1)
    #expect(try b.performAndWait { try a.performAndWait { 2 } } == 2)
    try a.stopLoop()
    try b.stopLoop()
  }

  @Test("a cycle of three waiting threads is rejected with all names")
  func three() throws {
    let names = ["a", "b", "c"]
    let threads = names.map { Thread.running(name: $0) }
    let (a, b, c) = (threads[0], threads[1], threads[2])
    #expect(throws: ThreadError.wouldDeadlock(cycle: ["c", "a", "b", "c"].map { "thread \"\($0)\"" })) {
      try a.performAndWait { try b.performAndWait { try c.performAndWait { try a.performAndWait {} } } }
    }
    for thread in threads { try thread.stopLoop() }
  }

  @Test("a thread that waits for its own work is no deadlock, because the work runs immediately")
  func oneself() throws {
    let a = Thread.running()
    let b = Thread.running()
    #expect(try a.performAndWait { try a.performAndWait { 1 } } == 1)
    // Through another thread, it is a cycle.
    #expect(throws: ThreadError.self) { try b.performAndWait { try a.performAndWait { try b.performAndWait {} } } }
    try a.stopLoop()
    try b.stopLoop()
  }

  @Test("work posted by a rejected wait does not run")
  func refusedWork() throws {
    let log = Log()
    let a = Thread.running()
    let b = Thread.running()
    _ = try a.performAndWait {
      try b.performAndWait {
        _ = #expect(throws: ThreadError.self) { try a.performAndWait { log.write("ran") } }
      }
    }
    try a.performAndWait {}
    #expect(log.text == "")
    try a.stopLoop()
    try b.stopLoop()
  }

  @Test("a join together with a wait for work can close a cycle")
  func join() throws {
    let a = Thread.running(name: "a")
    let b = Thread.running(name: "b")
    #expect(throws: ThreadError.wouldDeadlock(cycle: ["thread \"b\"", "thread \"a\"", "thread \"b\""])) {
      try a.performAndWait { try b.performAndWait { try a.join() } }
    }
    try a.stopLoop()
    try b.stopLoop()
  }

  @Test("a new resident thread's start cannot wait for the thread that creates it")
  func start() throws {
    let maker = Thread.running(name: "maker")
    let error = Box<ThreadError?>(nil)
    try maker.performAndWait {
      let thread = try ResidentThread(
        name: "made",
        onStart: {
          do { try maker.performAndWait {} } catch let caught { error.value = caught as? ThreadError }
        })
      thread.stop()
      try thread.join()
    }
    #expect(error.value == .wouldDeadlock(cycle: ["thread \"made\"", "thread \"maker\"", "thread \"made\""]))
    try maker.stopLoop()
  }

  @Test("if several waits close a cycle at the same moment, at least one is rejected", arguments: [2, 3])
  func together(count: Int) throws {
    for _ in 0..<200 {
      let threads = (0..<count).map { _ in Thread.running() }
      let errors = Box<[any Error]>([])
      let arrived = Box(0)
      for (index, thread) in threads.enumerated() {
        let next = threads[(index + 1) % count]
        try thread.perform {
          arrived.update { $0 += 1 }
          waitUntil { arrived.value >= count }
          do { try next.performAndWait {} } catch { errors.update { $0.append(error) } }
          arrived.update { $0 += 1 }
        }
      }
      waitUntil { arrived.value == 2 * count }
      for thread in threads { try thread.stopLoop() }
      #expect(!errors.value.isEmpty && errors.value.count <= count)
      for case let error as ThreadError in errors.value {
        guard case .wouldDeadlock(let cycle) = error else {
          Issue.record("\(error)")
          continue
        }
        #expect(cycle.count == count + 1 && cycle.first == cycle.last)
      }
    }
  }

  @Test("a wait that has just ended closes no cycle", arguments: [(2, 1, 4000), (3, 2, 4000), (4, 3, 4000)])
  func justOver(threads count: Int, tokens: Int, rounds: Int) throws {
    // Each token is passed on immediately, although the thread it came from may not have woken yet. There are fewer
    // tokens than threads, so there is never a cycle.
    let ring = try (0..<count).map { _ in try ResidentThread() }
    let failures = Box<[any Error]>([])
    let gates = (0..<tokens).map { _ in Latch() }
    for (token, gate) in gates.enumerated() {
      try ring[token].perform { pass(ring, from: token, rounds: rounds, failures, gate) }
    }
    for gate in gates { gate.wait() }
    #expect(failures.value.isEmpty)
    for thread in ring {
      thread.stop()
      try thread.join()
    }
  }
}

private func pass(_ ring: [ResidentThread], from: Int, rounds: Int, _ failures: Box<[any Error]>, _ done: Latch) {
  guard rounds > 0 else { return done.open() }
  let next = (from + 1) % ring.count
  do {
    _ = try ring[next].performAndWait {
      try ring[next].perform { pass(ring, from: next, rounds: rounds - 1, failures, done) }
    }
  } catch {
    failures.update { $0.append(error) }
    done.open()
  }
}
