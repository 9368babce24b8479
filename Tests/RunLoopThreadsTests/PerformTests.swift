// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

@Suite("Work for a thread", .timeLimit(.minutes(20)))
struct PerformTests {
  @Test("work runs on the thread, in the order of the posts, and its token reports it")
  func order() throws {
    let log = Log()
    let thread = Thread.running()
    let tokens = try (0..<5).map { number in
      try thread.perform { log.write(Thread.current === thread ? "\(number)" : "elsewhere") }
    }
    try thread.performAndWait {}
    #expect(log.text == "0 1 2 3 4" && tokens.allSatisfy { $0.state == .ran })
    try thread.stopLoop()
  }

  @Test("a thread that was started but does not run its loop yet keeps its work", .rule(.r60))
  func queues() throws {
    let log = Log()
    let hold = Hold()
    let thread = Thread.started {
      hold.occupy()
      log.write("body")
      RunLoop.current.run(mode: .default, for: Duration.zero)
    }
    let early = try thread.perform { log.write("work") }
    hold.begun.wait()
    #expect(early.state == .pending)
    hold.released.open()
    try thread.join()
    #expect(log.text == "body work" && early.state == .ran)
  }

  @Test("work waits for a run of one of its modes, and runs once")
  func modes() throws {
    let log = Log()
    let hold = Hold()
    let thread = Thread.started {
      hold.occupy()
      for mode: RunLoop.Mode in [.default, "b", "a"] {
        log.write(mode.rawValue)
        RunLoop.current.run(mode: mode, for: Duration.zero)
      }
    }
    try thread.perform(inModes: ["a", "b"]) { log.write("work") }
    try thread.perform { log.write("common") }
    hold.released.open()
    try thread.join()
    #expect(log.text == "kCFRunLoopDefaultMode common b work a")
  }

  @Test("a list without modes is rejected")
  func noModes() throws {
    let thread = Thread.running()
    #expect(throws: ThreadError.noModes) { try thread.perform(inModes: []) {} }
    #expect(throws: ThreadError.noModes) { try thread.performAndWait(inModes: []) {} }
    #expect(throws: ThreadError.noModes) { try thread.perform(afterDelay: .zero, inModes: []) {} }
    try thread.stopLoop()
  }

  @Test("work that is cancelled before it began does not run, and is released")
  func cancel() throws {
    let log = Log()
    let hold = Hold()
    let thread = Thread.running()
    try thread.perform { hold.occupy() }
    let held = Token(log)
    let token = try thread.perform { [held] in held.touch() }
    withExtendedLifetime(consume held) {}
    #expect(token.state == .pending && token.cancel() && token.state == .cancelled)
    #expect(log.text == "released")
    #expect(!token.cancel())
    hold.released.open()
    try thread.stopLoop()
    #expect(token.state == .cancelled)
  }

  @Test("work that has begun can no longer be cancelled")
  func cancelTooLate() throws {
    let hold = Hold()
    let thread = Thread.running()
    let token = try thread.perform { hold.occupy() }
    hold.begun.wait()
    #expect(token.state == .running && !token.cancel())
    hold.released.open()
    try thread.stopLoop()
    #expect(token.state == .ran && !token.cancel())
  }

  @Test("work that its thread leaves behind is dropped and released")
  func drop() throws {
    let log = Log()
    let hold = Hold()
    let thread = Thread.started { hold.occupy() }
    let held = Token(log)
    let token = try thread.perform { [held] in held.touch() }
    withExtendedLifetime(consume held) {}
    hold.released.open()
    try thread.join()
    #expect(token.state == .dropped && !token.cancel() && log.text == "released")
  }

  @Test("delayed work runs in the order of its dates")
  func delayed() throws {
    let log = Log()
    let done = Latch()
    let thread = Thread.running()
    // Both are posted before the thread checks for either.
    try thread.performAndWait {
      try thread.perform(afterDelay: .milliseconds(2)) {
        log.write("later")
        done.open()
      }
      try thread.perform(afterDelay: .zero) { log.write("now") }
    }
    done.wait()
    #expect(log.text == "now later")
    try thread.stopLoop()
  }

  @Test("delayed work waits for a run of its mode")
  func delayedModes() throws {
    let log = Log()
    let thread = Thread.running()
    let token = try thread.perform(afterDelay: .seconds(-1), inModes: ["a"]) { log.write("a") }
    try thread.performAndWait { log.write("default") }
    #expect(token.state == .pending)
    _ = try thread.performAndWait { RunLoop.current.run(mode: "a", for: .unlimited) }
    #expect(log.text == "default a" && token.state == .ran)
    try thread.stopLoop()
  }

  @Test("delayed work that is cancelled is released with its timer")
  func cancelDelayed() throws {
    let log = Log()
    let thread = Thread.running()
    let held = Token(log)
    let token = try thread.perform(afterDelay: .seconds(1000)) { [held] in held.touch() }
    withExtendedLifetime(consume held) {}
    #expect(thread.runLoop?.itemCounts.timers == 1)
    #expect(token.cancel() && log.text == "released" && !token.cancel())
    #expect(thread.runLoop?.itemCounts.timers == 0)
    try thread.stopLoop()
  }

  @Test("delayed work ends with its thread")
  func dropDelayed() throws {
    let log = Log()
    let thread = Thread.running()
    let held = Token(log)
    let token = try thread.perform(afterDelay: .seconds(1000)) { [held] in held.touch() }
    withExtendedLifetime(consume held) {}
    try thread.stopLoop()
    #expect(token.state == .dropped && log.text == "released")
  }
}

@Suite("Rejected work", .timeLimit(.minutes(20)))
struct RefusalTests {
  /// Checks that all ways to post work to a thread throw the same error.
  private func expectRefusal(
    _ error: ThreadError, _ thread: Thread, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(throws: error, sourceLocation: sourceLocation) { try thread.perform {} }
    #expect(throws: error, sourceLocation: sourceLocation) { try thread.performAndWait {} }
    #expect(throws: error, sourceLocation: sourceLocation) { try thread.performAndWait(timeout: .zero) {} }
    #expect(throws: error, sourceLocation: sourceLocation) { try thread.perform(afterDelay: .zero) {} }
  }

  @Test("a thread that was never started rejects work at once, and accepts it after its start")
  func neverStarted() throws {
    let log = Log()
    let thread = Thread { RunLoop.current.run(mode: .default, for: Duration.zero) }
    thread.name = "new"
    expectRefusal(.notStarted(thread: "thread \"new\""), thread)
    let hold = Hold()
    thread.runLoop?.perform { hold.occupy() }
    thread.start()
    try thread.perform { log.write("ran") }
    hold.released.open()
    try thread.join()
    #expect(log.text == "ran" || log.text == "")
  }

  @Test("a thread that has finished rejects at once")
  func finished() throws {
    let thread = Thread {}
    thread.name = "old"
    thread.start()
    try thread.join()
    expectRefusal(.finished(thread: "thread \"old\""), thread)
  }

  @Test("a thread that was cancelled before its start rejects at once, before and after that")
  func cancelledBeforeStart() {
    let thread = Thread {}
    thread.name = "void"
    thread.cancel()
    expectRefusal(.notStarted(thread: "thread \"void\""), thread)
    thread.start()
    expectRefusal(.finished(thread: "thread \"void\""), thread)
  }

  @Test("a thread that could not be started rejects work at once")
  func cannotStart() {
    let thread = Thread {}
    thread.name = "none"
    thread.stackSize = 1 << 60
    thread.start()
    expectRefusal(.finished(thread: "thread \"none\""), thread)
  }

  @Test("rejected work is released at once")
  func released() {
    let log = Log()
    let thread = Thread {}
    let held = Token(log)
    #expect(throws: ThreadError.self) { try thread.perform { [held] in held.touch() } }
    withExtendedLifetime(consume held) {}
    #expect(log.text == "released")
  }

  @Test("each error has a text that names the thread")
  func texts() {
    let errors: [ThreadError] = [
      .notStarted(thread: "A"), .alreadyStarted(thread: "A"), .cancelledBeforeStart(thread: "A"),
      .finished(thread: "A"), .stopping(thread: "A"), .cannotStart(thread: "A", number: 11),
      .dropped(thread: "A"), .joinsItself(thread: "A"),
      .wouldDeadlock(cycle: ["A", "B", "A"]),
    ]
    for error in errors { #expect("\(error)".contains("A")) }
    #expect("\(ThreadError.cannotStart(thread: "A", number: 11))".contains("Resource temporarily unavailable (11)"))
    #expect("\(ThreadError.wouldDeadlock(cycle: ["A", "B", "A"]))".contains("A waits for B waits for A"))
  }
}
