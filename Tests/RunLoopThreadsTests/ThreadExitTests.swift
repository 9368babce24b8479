// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

// L24, L25
@Suite("The end of a thread", .timeLimit(.minutes(20)))
struct ThreadExitTests {
  @Test("a thread that leaves by exit leaks neither its object nor its block nor the block's captures")
  func exit() throws {
    let log = Log()
    let object: WeakBox<Thread>
    do {
      let token = Token(log)
      let thread = EndingThread {
        token.touch()
        log.write("ran")
        Thread.exit()
      }
      thread.end = { log.write("gone") }
      object = WeakBox(thread)
      thread.start()
      try thread.join()
      #expect(thread.isFinished && !thread.isExecuting)
      #expect(log.text == "ran")
    }
    waitUntil { object.object == nil }
    waitUntil { log.count(of: "gone") == 1 }
    #expect(log.text == "ran released gone" || log.text == "ran gone released")
  }

  @Test("exit works from any depth, and nothing after it runs")
  func depth() throws {
    let log = Log()
    let thread = Thread.started {
      func deeper(_ depth: Int) {
        if depth == 0 { Thread.exit() as Never }
        deeper(depth - 1)
        log.write("returned")
      }
      deeper(10)
      log.write("after")
    }
    try thread.join()
    #expect(log.text == "" && thread.isFinished)
  }

  @Test("exit ends the thread's loop, and drops the work waiting in it")
  func exitEndsLoop() throws {
    let log = Log()
    let hold = Hold()
    let thread = Thread.started {
      hold.occupy()
      Thread.exit()
    }
    hold.begun.wait()
    let loop = try #require(thread.runLoop)
    let token = try thread.perform { log.write("ran") }
    let delayed = try thread.perform(afterDelay: .zero) { log.write("ran") }
    hold.released.open()
    try thread.join()
    #expect(log.text == "" && loop.hasEnded && token.state == .dropped && delayed.state == .dropped)
  }

  @Test("exit within work ends the running work and all work behind it, even in the same pass")
  func exitInWork() throws {
    let log = Log()
    let hold = Hold()
    let thread = Thread.started {
      hold.occupy()
      RunLoop.current.add(Port(), forMode: .default)
      RunLoop.current.runUntilStopped()
      log.write("after the loop")
    }
    hold.begun.wait()
    let first = try thread.perform { log.write("first") }
    let second = try thread.perform(inModes: [.default]) { Thread.exit() }
    let third = try thread.perform { log.write("third") }
    let fourth = try thread.perform(inModes: ["another"]) { log.write("fourth") }
    let fifth = try thread.perform(afterDelay: .seconds(1000)) { log.write("fifth") }
    let raw = Token(log)
    thread.runLoop?.perform(inModes: ["another"]) { [raw] in raw.touch() }
    withExtendedLifetime(consume raw) {}
    hold.released.open()
    try thread.join()
    #expect(log.text == "first released")
    #expect([first, second, third, fourth, fifth].map(\.state) == [.ran, .dropped, .dropped, .dropped, .dropped])
  }

  @Test("the loop of a resident thread that calls exit in a call-out is released", arguments: 0..<4)
  func exitOfResidentThread(kind: Int) throws {
    let loop: WeakBox<RunLoop>
    do {
      let thread = try ResidentThread()
      loop = WeakBox(thread.runLoop)
      switch kind {
      case 0: try thread.perform { Thread.exit() }
      case 1: thread.runLoop.perform { Thread.exit() }
      case 2:
        let source = RunLoop.Source { Thread.exit() }
        thread.runLoop.add(source, forMode: .default)
        source.signal()
        thread.runLoop.wakeUp()
      default: #expect(throws: ThreadError.self) { try thread.performAndWait { Thread.exit() } }
      }
      _ = try thread.join()
    }
    waitUntil { loop.object == nil }
  }

  @Test("a task's job cannot end its thread, and the message says so")
  func exitInTask() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let thread = try ResidentThread()
      // By its type, the closure returns.
      let exit: @Sendable () -> Void = { Thread.exit() }
      await Task(executorPreference: thread) { exit() }.value
    }
    let message = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(message.contains("Thread.exit() was called in a task, which would never be finished"), "\(message)")
  }

  @Test("the waiter for work whose thread exits meanwhile is notified")
  func waiterOfExit() {
    let thread = Thread.running(name: "leaver")
    #expect(throws: ThreadError.dropped(thread: "thread \"leaver\"")) {
      try thread.performAndWait { Thread.exit() }
    }
  }

  @Test("exit within delayed work ends that work and the rest")
  func exitInTimer() throws {
    let hold = Hold()
    let thread = Thread.started {
      hold.occupy()
      RunLoop.current.runUntilStopped()
    }
    hold.begun.wait()
    let leaving = try thread.perform(afterDelay: .zero) { Thread.exit() }
    let due = try thread.perform(afterDelay: .zero) {}
    hold.released.open()
    try thread.join()
    #expect(leaving.state == .dropped && due.state == .dropped)
  }

  @Test("the exit hook runs once on the thread, before its loop has ended, even after exit")
  func hook() throws {
    Hook.install()
    for leaves in [false, true] {
      let log = Log()
      let thread = Thread {
        _ = RunLoop.current
        if leaves { Thread.exit() }
      }
      _ = thread.attachment { log }
      thread.start()
      try thread.join()
      #expect(log.text == "hook on itself, loop alive")
    }
  }

  @Test("calling the exit hook costs the same after many threads")
  func hookOfMany() throws {
    Hook.install()
    let thread = Thread.started {
      for _ in 0..<20_000 { LoadHook.threadWillExit.call(Thread.current) }
    }
    try thread.join()
    #expect(thread.isFinished)
  }

  @Test("the exit hook runs on a foreign thread too if that has an object")
  func foreignHook() {
    Hook.install()
    let log = Log()
    onNewThread { _ = Thread.current.attachment { log } }
    #expect(log.text == "hook on itself, loop alive")
  }

  @Test("the exit hook's posts are rejected or dropped, and not silently lost")
  func hookPosts() throws {
    Hook.install()
    let log = Log()
    let thread = Thread {}
    _ = thread.attachment {
      HookBody {
        let thread = Thread.current
        let token = try? thread.perform { log.write("ran") }
        _ = thread.attachment { TokenAtEnd(log, token) }
      }
    }
    thread.start()
    try thread.join()
    #expect(log.text == "dropped")
  }

  @Test("the object ends before the loop, in whatever order the keys were created")
  func keyOrder() async {
    // Needs a process in which a foreign thread's loop comes first.
    await #expect(processExitsWith: .success) {
      _ = onNewThread { RunLoop.current }
      Hook.install()
      let log = Log()
      let thread = Thread { _ = RunLoop.current }
      _ = thread.attachment { log }
      thread.start()
      try thread.join()
      #expect(log.text == "hook on itself, loop alive")
      let resident = try ResidentThread(onStop: { log.write(RunLoop.current.hasEnded ? "dead" : "alive") })
      resident.stop()
      try resident.join()
      #expect(log.text == "hook on itself, loop alive alive")
    }
  }

  @Test("the main thread cannot exit")
  func mainThread() async {
    // The body of an exit test runs on another thread, so only the check itself can be tested.
    #expect(!RunLoop.isMainThread)
  }

  @Test("sources leave the loop when its thread ends, on that thread")
  func sources() throws {
    let log = Log()
    let thread = Thread {}
    let loop = try #require(thread.runLoop)
    let source = RunLoop.Source(cancel: { _, _ in log.write(Thread.current === thread ? "itself" : "other") }) {}
    loop.add(source, forMode: .default)
    thread.start()
    try thread.join()
    #expect(log.text == "itself" && loop.hasEnded)
  }
}

@Suite("Waiting for the end of a thread", .timeLimit(.minutes(20)))
struct ThreadJoinTests {
  @Test("a join returns when the work is done and the loop has ended, for any number of waiters")
  func many() throws {
    let log = Log()
    let hold = Hold()
    let thread = Thread.started {
      hold.occupy()
      log.write("done")
    }
    hold.begun.wait()
    let joiners = (0..<4).map { _ in
      Thread.started {
        #expect(throws: Never.self) { try thread.join() }
        log.write("joined")
      }
    }
    for joiner in joiners { waitUntil { joiner.isWaiting } }
    hold.released.open()
    for joiner in joiners { try joiner.join() }
    try thread.join()
    try thread.join(timeout: .zero)
    #expect(log.text == "done joined joined joined joined" && thread.runLoop == nil)
  }

  @Test("a thread cannot join itself")
  func oneself() throws {
    let caught = Box<ThreadError?>(nil)
    let thread = Thread {
      do throws(ThreadError) { try Thread.current.join() } catch { caught.value = error }
    }
    thread.name = "selfish"
    thread.start()
    try thread.join()
    #expect(caught.value == .joinsItself(thread: "thread \"selfish\""))
  }

  @Test("a thread that was not started cannot be joined")
  func notStarted() {
    let thread = Thread {}
    #expect(throws: ThreadError.notStarted(thread: "a thread without a name")) { try thread.join() }
    #expect(throws: ThreadError.self) { try thread.join(timeout: .seconds(1)) }
  }

  @Test("a join ends after its timeout", arguments: [Duration.seconds(-1), .zero, .milliseconds(1)])
  func timeout(_ timeout: Duration) throws {
    let hold = Hold()
    let thread = Thread.started { hold.occupy() }
    hold.begun.wait()
    #expect(throws: ThreadError.timedOut) { try thread.join(timeout: timeout) }
    hold.released.open()
    try thread.join(timeout: .seconds(1_000_000_000_000))
  }

  @Test("two threads cannot join each other")
  func cycle() throws {
    let first = Box<Thread?>(nil)
    let begin = Latch()
    let errors = Box<[ThreadError]>([])
    let other = Thread {
      begin.wait()
      do throws(ThreadError) { try first.value?.join() } catch { errors.update { $0.append(error) } }
    }
    let one = Thread {
      begin.wait()
      do throws(ThreadError) { try other.join() } catch { errors.update { $0.append(error) } }
    }
    first.value = one
    one.name = "one"
    other.name = "other"
    one.start()
    other.start()
    begin.open()
    try one.join()
    try other.join()
    first.value = nil
    let names = ["thread \"one\"", "thread \"other\""]
    let cycles: [ThreadError] = [
      .wouldDeadlock(cycle: [names[0], names[1], names[0]]), .wouldDeadlock(cycle: [names[1], names[0], names[1]]),
    ]
    // At least one of them, or both if they closed the cycle at the same moment.
    #expect(!errors.value.isEmpty && errors.value.allSatisfy(cycles.contains))
  }
}

private final class EndingThread: Thread, @unchecked Sendable {
  // Sendable: written before the start.
  var end: @Sendable () -> Void = {}

  deinit { end() }
}

private final class HookBody: Sendable {
  let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

/// Logs the state of work when it is released.
private final class TokenAtEnd: Sendable {
  let log: Log
  let token: PerformToken?

  init(_ log: Log, _ token: PerformToken?) {
    self.log = log
    self.token = token
  }

  deinit { log.write(token.map { "\($0.state)" } ?? "refused") }
}

private enum Hook {
  /// The hook of a higher-level library in this process, which is still called.
  static let before: LoadHook.Function? = LoadHook.threadWillExit.exchange { pointer in
    Hook.before?(pointer)
    guard let pointer else { return }
    let thread = Unmanaged<Thread>.fromOpaque(pointer).takeUnretainedValue()
    thread.attachment(HookBody.self)?.body()
    guard let log = thread.attachment(Log.self) else { return }
    let place = Thread.current === thread ? "itself" : "another"
    log.write("hook on \(place), loop \(RunLoop.current.hasEnded ? "dead" : "alive")")
  }

  static func install() { _ = before }
}
