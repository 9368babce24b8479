// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

@Suite("The current thread", .timeLimit(.minutes(20)))
struct ThreadCurrentTests {
  @Test("a thread finds its own object, and its own loop")
  func own() throws {
    let found = Box<(Thread, RunLoop)?>(nil)
    let thread = Thread { found.value = (Thread.current, RunLoop.current) }
    let loop = try #require(thread.runLoop)
    thread.start()
    try thread.join()
    #expect(found.value?.0 === thread && found.value?.1 === loop)
  }

  // L27
  @Test("a thread created by other code has one object, which is executing and ends with it")
  func foreign() throws {
    let object = try #require(
      onNewThread {
        let thread = Thread.current
        #expect(thread === Thread.current && thread.isExecuting && !thread.isMainThread && !thread.isFinished)
        #expect(thread.runLoop === RunLoop.current)
        #expect(throws: ThreadError.self) { try thread.tryStart() }
        return thread
      })
    #expect(object.isFinished && !object.isExecuting && object.runLoop == nil)
    try object.join()
  }

  @Test("a loop that a foreign thread created earlier belongs to its object")
  func foreignLoop() {
    let same = onNewThread {
      let loop = RunLoop.current
      return Thread.current.runLoop === loop && RunLoop.current === loop
    }
    #expect(same == true)
  }

  @Test("a foreign thread that abandons its loop gets a new one, which belongs to its object")
  func givenUp() {
    onNewThread {
      let thread = Thread.current
      let first = RunLoop.current
      #expect(thread.runLoop === first)
      RunLoop.giveUpCurrent()
      let second = RunLoop.current
      #expect(first.hasEnded && !second.hasEnded && second !== first)
      #expect(thread.runLoop === second)
    }
  }

  @Test("a foreign thread accepts work like any other")
  func foreignWork() throws {
    let box = Box<Thread?>(nil)
    let made = Latch()
    let runner = Thread.started {
      onNewThread {
        box.value = Thread.current
        RunLoop.current.add(Port(), forMode: .default)
        made.open()
        RunLoop.current.runUntilStopped()
      }
    }
    made.wait()
    let thread = try #require(box.value)
    #expect(try thread.performAndWait { Thread.current === thread })
    thread.name = "foreign"
    let id = try thread.performAndWait { RunLoop.callingThreadID }
    #expect(System.name(ofThread: id) == "foreign")
    try thread.stopLoop()
    try runner.join()
    #expect(throws: ThreadError.finished(thread: "thread \"foreign\"")) { try thread.perform {} }
  }

  @Test("the object of a foreign thread is released with the thread")
  func foreignReleased() throws {
    let object = onNewThread { WeakBox(Thread.current) }
    #expect(object.object == nil)
  }

  @Test("the main thread's object is unique and available on every thread")
  func main() {
    #expect(Thread.main === Thread.mainThread && Thread.main.isMainThread)
    // The test program has an async main, and its first thread exits at some point.
    if Thread.main.isExecuting {
      #expect(Thread.main.runLoop === RunLoop.main || RunLoop.mainThreadHasLeft)
    } else {
      #expect(RunLoop.mainThreadHasLeft && Thread.main.isFinished && Thread.main.runLoop == nil)
    }
    #expect(onNewThread { Thread.main.isMainThread && Thread.current !== Thread.main } == true)
  }

  @Test(
    "a system thread has its object in the first round of destructors, and a finished one later",
    .rule(.r115, .m36))
  func foreignDestructors() {
    let late = Late()
    onNewThread {
      _ = Thread.current
      late.install()
    }
    #expect(late.seen.value == ["executing", "finished", "finished"])
  }

  @Test("a thread ends its object and loop before any destructor runs", .rule(.r115, .m36), arguments: [false, true])
  func ownDestructors(exits: Bool) throws {
    let late = Late()
    let thread = Thread {
      RunLoop.current.add(RunLoop.Source(cancel: { _, _ in late.seen.update { $0.append("cancel") } }) {}, forMode: "A")
      late.install()
      if exits { Thread.exit() }
    }
    thread.start()
    try thread.join()
    // The wait ends in the third round, in which this test's newer key comes later.
    waitUntil { late.seen.value.count == 4 }
    #expect(late.seen.value == ["cancel", "finished", "finished", "finished"])
  }

  @Test(
    "a thread that calls a bare pthread_exit has its object in the first round of destructors", .rule(.r115, .m36))
  func bareExit() throws {
    let late = Late()
    let thread = Thread {
      RunLoop.current.add(RunLoop.Source(cancel: { _, _ in late.seen.update { $0.append("cancel") } }) {}, forMode: "A")
      late.install()
      pthread_exit(nil)
    }
    thread.start()
    try thread.join()
    // The wait ends in the third round, in which this test's newer key comes later.
    waitUntil { late.seen.value.count == 4 }
    #expect(late.seen.value == ["executing", "cancel", "finished", "finished"])
  }

  @Test("a thread whose loop has ended gets no object that could never end", .rule(.r115, .m21))
  func objectAfterLoop() {
    let late = Late()
    onNewThread {
      _ = RunLoop.current
      late.isFirstAsked = 2
      late.install()
    }
    #expect(late.seen.value == ["finished", "finished"])
  }
}

/// Records the observations of a thread-specific destructor in three rounds, each after the destructor of the object.
private final class Late: @unchecked Sendable {
  // Sendable: used by one thread at a time; a lock guards the results.
  let seen = Box<[String]>([])
  /// The first round in which it asks.
  var isFirstAsked = 1
  private var round = 1

  private static let key: pthread_key_t = {
    // Another thread first creates the key of the objects, which must be older.
    onNewThread { _ = Thread.current }
    var key = pthread_key_t()
    pthread_key_create(&key) { value in
      guard let value else { return }
      let late = Unmanaged<Late>.fromOpaque(value)
      if late._withUnsafeGuaranteedRef({ $0.look() }) { pthread_setspecific(Late.key, value) } else { late.release() }
    }
    return key
  }()

  func install() { pthread_setspecific(Late.key, Unmanaged.passRetained(self).toOpaque()) }

  private func look() -> Bool {
    if round >= isFirstAsked {
      let thread = Thread.current
      seen.update { $0.append(thread.isFinished ? "finished" : "executing") }
      if thread.isFinished { #expect(thread.runLoop == nil && RunLoop.current.hasEnded) }
    }
    round += 1
    return round <= 3
  }
}
