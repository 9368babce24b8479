// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

@Suite("The start of a thread", .timeLimit(.minutes(20)))
struct ThreadStartTests {
  @Test("a thread cancelled before its start is finished and reports why")
  func cancelledBefore() throws {
    let log = Log()
    let thread = Thread { log.write("ran") }
    thread.name = "early"
    thread.cancel()
    thread.start()
    #expect(thread.isFinished && thread.isCancelled && !thread.isExecuting)
    #expect(thread.startError == .cancelledBeforeStart(thread: "thread \"early\""))
    try thread.join()
    #expect(log.text == "")
  }

  @Test("trying to start a cancelled thread throws")
  func tryCancelled() {
    let thread = Thread {}
    thread.cancel()
    #expect(throws: ThreadError.cancelledBeforeStart(thread: "a thread without a name")) { try thread.tryStart() }
    #expect(thread.isFinished && thread.startError == nil)
  }

  @Test("a second start has no effect except a report")
  func twice() throws {
    let hold = Hold()
    let log = Log()
    let thread = Thread {
      hold.occupy()
      log.write("ran")
    }
    thread.name = "twice"
    thread.start()
    hold.begun.wait()
    #expect(thread.startError == nil)
    thread.start()
    #expect(thread.startError == .alreadyStarted(thread: "thread \"twice\""))
    #expect(thread.isExecuting)
    #expect(throws: ThreadError.alreadyStarted(thread: "thread \"twice\"")) { try thread.tryStart() }
    hold.released.open()
    try thread.join()
    #expect(throws: ThreadError.alreadyStarted(thread: "thread \"twice\"")) { try thread.tryStart() }
    #expect(log.text == "ran")
  }

  @Test("of many simultaneous starts of a thread, one succeeds")
  func contention() throws {
    let log = Log()
    let errors = Box<[ThreadError]>([])
    let thread = Thread { log.write("ran") }
    let starters = (0..<4).map { _ in
      Thread.started {
        do throws(ThreadError) {
          try thread.tryStart()
        } catch {
          errors.update { $0.append(error) }
        }
      }
    }
    for starter in starters { try starter.join() }
    try thread.join()
    #expect(log.text == "ran" && errors.value.count == 3)
  }

  @Test("a thread that the system cannot start is finished, reports why, and releases its block")
  func rejected() throws {
    let log = Log()
    let object: WeakBox<Thread>
    do {
      let token = Token(log)
      let thread = Thread { token.touch() }
      object = WeakBox(thread)
      thread.name = "too large"
      thread.stackSize = 1 << 60
      thread.start()
      guard case .cannotStart("thread \"too large\"", let number)? = thread.startError else {
        Issue.record("\(String(describing: thread.startError))")
        return
      }
      #expect(number == EAGAIN || number == ENOMEM || number == EINVAL)
      #expect(thread.isFinished && !thread.isExecuting)
      try thread.join()
    }
    #expect(object.object == nil && log.text == "released")
  }

  @Test("trying to start a thread that the system cannot start throws")
  func tryRefused() {
    let thread = Thread {}
    thread.stackSize = 1 << 60
    #expect(throws: ThreadError.self) { try thread.tryStart() }
    #expect(thread.isFinished && thread.startError == nil)
  }

  @Test("work waiting for a thread that cannot be started is dropped, and its waiter is notified")
  func droppedAtFailure() throws {
    let log = Log()
    let thread = Thread {}
    thread.stackSize = 1 << 60
    let loop = try #require(thread.runLoop)
    let token = Token(log)
    loop.perform { [token] in token.touch() }
    withExtendedLifetime(consume token) {}
    thread.start()
    #expect(log.text == "released" && loop.hasEnded && loop.statistics.droppedBlockCount == 1)
    #expect(thread.runLoop == nil)
  }
}
