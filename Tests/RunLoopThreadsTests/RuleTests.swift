// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

/// The ten rules for long-lived threads.
@Suite("The rules", .timeLimit(.minutes(20)))
struct RuleTests {
  @Test("T1: creation returns only once the loop accepts work")
  func creation() throws {
    for _ in 0..<100 {
      let log = Log()
      let thread = try ResidentThread(onStart: { log.write("open") })
      #expect(log.text == "open" && thread.state == .running && thread.thread.isExecuting)
      #expect(try thread.performAndWait { 1 } == 1)
    }
  }

  @Test("T2: a stop is sticky, idempotent, from any thread, at any time")
  func stop() throws {
    let thread = try ResidentThread()
    let states = Box<[ResidentThread.State]>([])
    let stoppers = (0..<4).map { _ in
      Thread.started {
        let state = thread.stop()
        states.update { $0.append(state) }
      }
    }
    for stopper in stoppers { try stopper.join() }
    try thread.join()
    #expect(states.value.count == 4 && states.value.allSatisfy { $0 == .draining || $0 == .finished })
    #expect(thread.stop() == .finished && thread.runLoop.hasEnded)
  }

  @Test("T3: releasing the last reference never blocks and posts nothing")
  func deinitialization() throws {
    let hold = Hold()
    var thread: ResidentThread? = try ResidentThread()
    let core = try #require(thread?.core)
    try thread?.perform { hold.occupy() }
    hold.begun.wait()
    thread = nil
    #expect(core.state == .draining && !core.runLoop.inbox.mayHaveEntries)
    hold.released.open()
    try core.thread.join()
    #expect(core.counts.posted == 1)
  }

  @Test("T4: every post ran, was cancelled, or was rejected")
  func everyPost() throws {
    let thread = try ResidentThread()
    // Besides the random posts below, there are always two that run and two that are cancelled.
    let posts = Atomic<Int>(4)
    for _ in 0..<2 {
      try thread.performAndWait {}
      try thread.perform(afterDelay: .seconds(1000)) {}
    }
    let posters = (0..<4).map { number in
      Thread.started {
        for index in 0..<500 {
          posts.wrappingAdd(1, ordering: .relaxed)
          switch index % 4 {
          case 0: _ = try? thread.perform {}
          case 1: (try? thread.perform {})?.cancel()
          case 2: _ = try? thread.perform(afterDelay: index % 8 < 4 ? .zero : .seconds(1000)) {}
          default: try? thread.performAndWait(inModes: index % 8 < 4 ? [.common] : ["never"], timeout: .zero) {}
          }
          if number == 0, index == 250 { thread.stop() }
          if number == 1, index == 400 { thread.stop(.immediately) }
        }
      }
    }
    for poster in posters { try poster.join() }
    let report = try thread.join()
    #expect(report.posted == posts.load(ordering: .relaxed) && report.droppedCount == 0)
    #expect(report.completedCount >= 2 && report.cancelledCount >= 2)
  }

  @Test("T5: a wait detects its own thread, a dead thread, and a cycle")
  func waits() throws {
    let (a, b) = (try ResidentThread(name: "a"), try ResidentThread(name: "b"))
    #expect(try a.performAndWait { try a.performAndWait { 1 } } == 1)
    #expect(throws: ThreadError.wouldDeadlock(cycle: ["b", "a", "b"].map { "thread \"\($0)\"" })) {
      try a.performAndWait { try b.performAndWait { try a.performAndWait {} } }
    }
    a.stop()
    try a.join()
    #expect(throws: ThreadError.finished(thread: "thread \"a\"")) { try a.performAndWait {} }
  }

  @Test("T6: no callback runs under a lock, so every callback may use the thread")
  func locks() async throws {
    let box = Box<ResidentThread?>(nil)
    let log = Log()
    let use = { @Sendable (place: String) in
      guard let thread = box.value else { return }
      _ = (thread.state, thread.counts, thread.thread.name, thread.thread.isExecuting, "\(thread)")
      thread.thread.name = place
      _ = try? thread.perform {}
      log.write(place)
    }
    let hold = Hold()
    let thread = try ResidentThread(onStop: { use("stop") })
    box.value = thread
    try thread.perform {
      use("work")
      hold.occupy()
    }
    hold.begun.wait()
    // Releasing cancelled work runs the deinitializers of its captures.
    let token = Token { use("cancelled") }
    let cancelled = try thread.perform { [token] in token.touch() }
    let second = Token { use("given up") }
    try thread.perform(inModes: ["never"]) { [second] in second.touch() }
    let third = Token { use("not due") }
    try thread.perform(afterDelay: .seconds(1000)) { [third] in third.touch() }
    withExtendedLifetime((consume token, consume second, consume third)) {}
    cancelled.cancel()
    thread.stop(.immediately)
    hold.released.open()
    _ = await thread.finished()
    try thread.join()
    box.value = nil
    #expect(log.text == "work cancelled not due given up stop")
    #expect(throws: ThreadError.self) {
      let rejected = Token { log.write("refused") }
      try thread.perform { [rejected] in rejected.touch() }
    }
    #expect(log.text.hasSuffix("refused"))
  }

  @Test("T7: work added during a pass gets a pass")
  func workInPass() throws {
    let done = Latch()
    let thread = try ResidentThread()
    try thread.perform {
      _ = try? thread.perform {
        _ = try? thread.perform(afterDelay: .zero) { _ = try? thread.perform { done.open() } }
      }
    }
    done.wait()
    #expect(thread.counts.rejectedCount == 0)
  }

  @Test("T8: the last closure to run is released before the loop sleeps")
  func release() throws {
    let log = Log()
    let thread = try ResidentThread()
    let token = Token(log)
    try thread.perform { [token] in token.touch() }
    withExtendedLifetime(consume token) {}
    // Nothing follows it.
    waitUntil { log.text == "released" }
    let second = Token(log, "again")
    // It is released before the waiting thread continues.
    try thread.performAndWait { [second] in second.touch() }
    withExtendedLifetime(consume second) {}
    waitUntil { log.text == "released again" }
  }

  @Test("T9: registries are synchronised and removable")
  func registry() throws {
    let threads = (0..<4).map { number in
      Thread.started {
        for round in 0..<100 {
          let thread = ResidentThread.shared("registry \(round % 3)")
          if round % 10 == number { ResidentThread.removeShared("registry \(round % 3)") }
          if round % 25 == number { thread.stop() }
          _ = try? thread.performAndWait {}
        }
      }
    }
    for thread in threads { try thread.join() }
    for number in 0..<3 {
      ResidentThread.removeShared("registry \(number)")
      #expect(ResidentThread.removeShared("registry \(number)") == nil)
    }
  }

  @Test("T10: a rejected setting is reported")
  func rejections() throws {
    let thread = try ResidentThread(configuration: .init(processors: [1023]))
    #expect(thread.thread.rejections == [.processors([1023], 22)])
  }
}
