// SPDX-License-Identifier: Apache-2.0

import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

@Suite("A resident thread", .timeLimit(.minutes(20)))
struct ResidentThreadTests {
  @Test("a resident thread is named, and accepts work until it is stopped")
  func lives() throws {
    let thread = try ResidentThread(name: "a resident's long name")
    #expect(thread.state == .running && thread.thread.isExecuting && thread.thread.name == "a resident's long name")
    let (id, name, isItself) = try thread.performAndWait {
      (RunLoop.callingThreadID, System.name(ofThread: RunLoop.callingThreadID), RunLoop.current === thread.runLoop)
    }
    #expect(id != RunLoop.callingThreadID && name == "a resident's lo" && isItself)
    #expect(thread.stop() == .draining)
    let report = try thread.join()
    #expect(thread.state == .finished && report.completedCount == 1 && report.posted == 1 && thread.thread.isFinished)
    #expect(thread.debugDescription == "<ResidentThread>{thread \"a resident's long name\", finished}")
  }

  @Test("a stop of its loop by other code ends a run and not the thread")
  func foreignStop() throws {
    let thread = try ResidentThread()
    for _ in 0..<3 {
      try thread.perform { RunLoop.current.stop() }
      thread.runLoop.stop()
      thread.runLoop.stop(mode: .default)
      #expect(try thread.performAndWait { 1 } == 1)
    }
    thread.stop()
    try thread.join()
  }

  @Test("onStart and onStop are called on the thread, around all work")
  func hooks() throws {
    let log = Log()
    let ids = Box<Set<Int32>>([])
    let note = { @Sendable (entry: String) in
      log.write(entry)
      ids.update { _ = $0.insert(RunLoop.callingThreadID) }
    }
    let thread = try ResidentThread(onStart: { note("start") }, onStop: { note("stop") })
    #expect(log.text == "start")
    try thread.perform { note("work") }
    thread.stop()
    try thread.join()
    #expect(log.text == "start work stop" && ids.value.count == 1)
    #expect(!ids.value.contains(RunLoop.callingThreadID))
  }

  @Test("the values captured by the hooks are released with the thread")
  func hooksReleased() throws {
    let log = Log()
    let opened = Token(log, "start")
    let closed = Token(log, "stop")
    let thread = try ResidentThread(onStart: { [opened] in opened.touch() }, onStop: { [closed] in closed.touch() })
    withExtendedLifetime((consume opened, consume closed)) {}
    let object = WeakBox(thread.core)
    thread.stop()
    try thread.join()
    withExtendedLifetime(consume thread) {}
    waitUntil { object.object == nil }
    waitUntil { log.count(of: "start") == 1 && log.count(of: "stop") == 1 }
  }

  @Test("a thread that cannot be created throws, calls nothing and leaves nothing behind")
  func cannotBeMade() {
    let log = Log()
    let token = Token(log)
    do throws(ThreadError) {
      _ = try ResidentThread(
        name: "huge", configuration: .init(stackSize: 1 << 60),
        onStart: { [token] in
          token.touch()
          log.write("start")
        }, onStop: { log.write("stop") })
      Issue.record("it was made")
    } catch {
      guard case .cannotStart(thread: "thread \"huge\"", _) = error else {
        Issue.record("\(error)")
        return
      }
    }
    withExtendedLifetime(consume token) {}
    #expect(log.text == "released")
  }

  @Test("threads are distinguished by identity")
  func identity() throws {
    let first = try ResidentThread()
    let second = try ResidentThread()
    #expect(first == first && first != second && Set([first, second, first]).count == 2)
  }

  @Test("delayed work runs, and can be cancelled")
  func delayed() throws {
    let log = Log()
    let done = Latch()
    let thread = try ResidentThread()
    let cancelled = try thread.perform(afterDelay: .zero, inModes: ["never"]) { log.write("cancelled") }
    let never = try thread.perform(afterDelay: .seconds(1000)) { log.write("never") }
    let token = try thread.perform(afterDelay: .milliseconds(1)) {
      log.write("ran")
      done.open()
    }
    done.wait()
    #expect(cancelled.cancel() && never.cancel() && !never.cancel())
    thread.stop()
    let report = try thread.join()
    #expect(log.text == "ran" && token.state == .ran && never.state == .cancelled)
    #expect(
      report.completedCount == 1 && report.cancelledCount == 2 && report.posted == 3 && report.remainingTimerCount == 0)
  }

  @Test("cancelled work is counted once, and does not run")
  func cancel() throws {
    let hold = Hold()
    let thread = try ResidentThread()
    try thread.perform { hold.occupy() }
    let token = try thread.perform { Issue.record("cancelled work ran") }
    #expect(token.cancel() && !token.cancel() && thread.counts.cancelledCount == 1)
    hold.released.open()
    thread.stop()
    let report = try thread.join()
    #expect(report.completedCount == 1 && report.cancelledCount == 1 && report.posted == 2)
  }

  @Test("a resident thread's Thread object accepts and counts the same work")
  func threadObject() throws {
    let thread = try ResidentThread()
    try thread.thread.perform {}
    #expect(try thread.thread.performAndWait { 1 } == 1)
    let token = try thread.thread.perform(afterDelay: .seconds(1000)) {}
    try thread.performAndWait {
      thread.stop()
      #expect(throws: ThreadError.self) { try Thread.current.perform {} }
    }
    let report = try thread.join()
    #expect(
      report.completedCount == 3 && report.cancelledCount == 1 && report.rejectedCount == 1 && token.state == .cancelled
    )
  }

  @Test("the stop report includes what was left in the loop")
  func itemsLeft() throws {
    let thread = try ResidentThread()
    thread.runLoop.add(Timer(timeInterval: 1000, repeats: true) { _ in }, forMode: .default)
    thread.runLoop.add(RunLoop.Source {}, forMode: .default)
    thread.runLoop.add(Port(), forMode: .common)
    thread.runLoop.add(RunLoop.Observer(activities: .all) { _, _ in }, forMode: .default)
    thread.stop()
    let report = try thread.join()
    #expect(report.remainingTimerCount == 1 && report.remainingSourceCount == 2)
  }

  @Test("waits throw the errors of the thread")
  func waits() throws {
    struct Failure: Error, Equatable {}
    let hold = Hold()
    let thread = try ResidentThread(name: "waits")
    #expect(throws: Failure()) { try thread.performAndWait { () throws(Failure) in throw Failure() } }
    #expect(throws: ThreadError.noModes) { try thread.performAndWait(inModes: []) {} }
    #expect(throws: ThreadError.noModes) { try thread.perform(inModes: []) {} }
    #expect(throws: ThreadError.noModes) { try thread.perform(afterDelay: .zero, inModes: []) {} }
    try thread.perform { hold.occupy() }
    #expect(throws: ThreadError.timedOut) { try thread.performAndWait(timeout: .zero) {} }
    #expect(throws: ThreadError.timedOut) { try thread.join(timeout: .zero) }
    hold.released.open()
    try thread.performAndWait {
      #expect(throws: ThreadError.joinsItself(thread: "thread \"waits\"")) { try thread.join() }
      #expect(throws: ThreadError.joinsItself(thread: "thread \"waits\"")) { try thread.join(timeout: .zero) }
    }
    thread.stop()
    let report = try thread.join()
    #expect(report.completedCount == 3 && report.cancelledCount == 1 && report.posted == 4)
    #expect(throws: ThreadError.finished(thread: "thread \"waits\"")) { try thread.performAndWait {} }
  }
}

// T3
@Suite("The last reference to a resident thread", .timeLimit(.minutes(20)))
struct ResidentDeinitTests {
  @Test("when the last reference is released, the thread runs what it has accepted, and ends")
  func stops() throws {
    let log = Log()
    let hold = Hold()
    var thread: ResidentThread? = try ResidentThread(onStop: { log.write("stop") })
    let object = try #require(thread?.thread)
    try thread?.perform { hold.occupy() }
    try thread?.perform { log.write("work") }
    hold.begun.wait()
    // A release that waited would hang here.
    thread = nil
    #expect(object.isExecuting && log.text == "")
    hold.released.open()
    try object.join()
    #expect(log.text == "work stop")
  }

  @Test("the last reference may be released on the thread itself, in work")
  func onItself() throws {
    let log = Log()
    let box = Box<ResidentThread?>(try ResidentThread(onStop: { log.write("stop") }))
    let object = try #require(box.value?.thread)
    try box.value?.perform {
      box.value = nil
      log.write("released")
    }
    try object.join()
    #expect(log.text == "released stop")
  }

  @Test("the last reference may be released with the work that holds it, run or not", arguments: [true, false])
  func inCapture(runs: Bool) throws {
    let log = Log()
    let hold = Hold()
    func start() throws -> (Thread, PerformToken) {
      let thread = try ResidentThread(onStop: { log.write("stop") })
      let token = try thread.perform {
        withExtendedLifetime(thread) { hold.occupy() }
        log.write("work")
      }
      return (thread.thread, token)
    }
    let (object, token) = try start()
    if runs { hold.begun.wait() } else { token.cancel() }
    hold.released.open()
    try object.join()
    #expect(log.text == "work stop" || (!runs && log.text == "stop"))
  }

  @Test("the last reference may be released immediately after the start")
  func atOnce() throws {
    for _ in 0..<50 {
      let log = Log()
      let object = try ResidentThread(onStart: { log.write("start") }, onStop: { log.write("stop") }).thread
      try object.join()
      #expect(log.text == "start stop")
    }
  }
}

// T9
@Suite("The shared resident threads", .timeLimit(.minutes(20)))
struct SharedResidentThreadTests {
  @Test("one shared thread is created, however many callers ask at once")
  func contention() throws {
    for round in 0..<20 {
      let name = "contention \(round)"
      let found = Box<[ResidentThread]>([])
      let askers = (0..<8).map { _ in
        Thread.started {
          let thread = ResidentThread.shared(name)
          found.update { $0.append(thread) }
        }
      }
      for asker in askers { try asker.join() }
      #expect(Set(found.value).count == 1 && found.value.count == 8)
      let thread = try #require(ResidentThread.removeShared(name))
      #expect(thread === found.value.first && thread.thread.name == name)
      found.value = []
    }
  }

  @Test("a callback at a thread's start may ask for the same shared thread, and for others")
  func reentrancy() async {
    // A lock held during the callback would block the process forever.
    await #expect(processExitsWith: .success) {
      let before = LoadHook.threadWillStart.exchange { _ in
        guard Reentrant.calls.add() == 1 else { return }
        Reentrant.found.value = ResidentThread.shared("name")
        // Another thread is not blocked either.
        onNewThread { _ = (ResidentThread.shared("name"), ResidentThread.shared("other")) }
      }
      let thread = ResidentThread.shared("name")
      #expect(thread === Reentrant.found.value && thread === ResidentThread.shared("name"))
      try thread.performAndWait {}
      _ = LoadHook.threadWillStart.exchange(before)
    }
  }

  @Test("each name has its own shared thread, and the default has a name")
  func names() {
    #expect(ResidentThread.shared("one") !== ResidentThread.shared("two"))
    #expect(ResidentThread.shared("one") === ResidentThread.shared("one"))
    #expect(ResidentThread.shared() === ResidentThread.shared("default"))
    for name in ["one", "two", "default"] { ResidentThread.removeShared(name) }
  }

  @Test("a removed shared thread ends with its last reference, and the next one is another")
  func removal() throws {
    var thread: ResidentThread? = ResidentThread.shared("removal")
    let object = try #require(thread?.thread)
    #expect(ResidentThread.removeShared("removal") === thread && ResidentThread.removeShared("removal") == nil)
    #expect(thread?.state == .running)
    let next = ResidentThread.shared("removal")
    #expect(next !== thread)
    thread = nil
    try object.join()
    ResidentThread.removeShared("removal")
  }

  @Test("a shared thread that was stopped is replaced")
  func stopped() throws {
    let first = ResidentThread.shared("stopped")
    first.stop()
    let second = ResidentThread.shared("stopped")
    #expect(second !== first && second.state == .running)
    try first.join()
    ResidentThread.removeShared("stopped")
  }
}

/// The results of an exit test's hook, which captures nothing.
private enum Reentrant {
  static let calls = Counter()
  static let found = Box<ResidentThread?>(nil)
}
