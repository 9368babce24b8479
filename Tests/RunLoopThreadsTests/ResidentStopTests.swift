// SPDX-License-Identifier: Apache-2.0

import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

// T2, M24
@Suite("Stopping a resident thread", .timeLimit(.minutes(20)))
struct ResidentStopTests {
  /// A thread that is held in work, with pending work: in the common modes, in a mode that never runs, delayed and
  /// due, and delayed and not due.
  private struct Scene {
    let log = Log()
    let hold = Hold()
    let thread: ResidentThread
    let tokens: [PerformToken]

    init(inHold: @escaping @Sendable (ResidentThread) -> Void = { _ in }) throws {
      let (log, hold) = (log, hold)
      let thread = try ResidentThread(name: "scene", onStop: { log.write("stop") })
      self.thread = thread
      var tokens: [PerformToken] = []
      tokens.append(
        try thread.perform { [unowned thread] in
          hold.occupy()
          inHold(thread)
          log.write("H")
        })
      hold.begun.wait()
      tokens.append(try thread.perform { log.write("1") })
      tokens.append(try thread.perform(inModes: ["never"]) { log.write("2") })
      tokens.append(try thread.perform(afterDelay: .zero) { log.write("due") })
      tokens.append(try thread.perform(inModes: [.default, "never"]) { log.write("3") })
      tokens.append(try thread.perform(afterDelay: .zero, inModes: ["never"]) { log.write("due2") })
      tokens.append(try thread.perform(afterDelay: .seconds(1000)) { log.write("later") })
      tokens.append(try thread.perform { log.write("4") })
      self.tokens = tokens
    }

    /// Releases the thread and returns its report.
    func end() throws -> ResidentThread.StopReport {
      hold.released.open()
      return try thread.join()
    }
  }

  @Test("a draining stop runs all accepted work in order in every mode, and cancels work that is not due")
  func afterPendingWork() throws {
    let scene = try Scene()
    #expect(scene.thread.stop() == .draining && scene.thread.state == .draining)
    let report = try scene.end()
    #expect(scene.log.text == "H 1 2 3 4 due due2 stop")
    #expect(report.completedCount == 7 && report.cancelledCount == 1 && report.posted == 8)
    #expect(report.remainingTimerCount == 0 && report.remainingSourceCount == 0)
    #expect(scene.tokens.map(\.state).filter { $0 == .cancelled }.count == 1)
  }

  @Test("an immediate stop lets running work finish, and cancels everything else")
  func immediately() throws {
    let scene = try Scene()
    #expect(scene.thread.stop(.immediately) == .stopping)
    let report = try scene.end()
    #expect(scene.log.text == "H stop")
    #expect(
      report.completedCount == 1 && report.cancelledCount == 7 && report.posted == 8 && report.remainingTimerCount == 0)
    #expect(scene.tokens.dropFirst().allSatisfy { $0.state == .cancelled })
  }

  @Test("from the thread itself, in work", arguments: [ResidentThread.StopPolicy.afterPendingWork, .immediately])
  func fromItself(policy: ResidentThread.StopPolicy) throws {
    let states = Box<[ResidentThread.State]>([])
    let scene = try Scene { thread in
      states.update { $0.append(thread.stop(policy)) }
      // The rest of the running call-out.
      #expect(throws: ThreadError.stopping(thread: "thread \"scene\"")) { try thread.perform {} }
    }
    let report = try scene.end()
    #expect(states.value == [policy == .immediately ? .stopping : .draining])
    #expect(scene.log.text == (policy == .immediately ? "H stop" : "H 1 2 3 4 due due2 stop"))
    #expect(report.posted == 9 && report.rejectedCount == 1)
  }

  @Test("a stop ends all nested runs, and new runs return at once")
  func nestedRuns() throws {
    let results = Box<[RunLoop.RunResult]>([])
    let thread = try ResidentThread()
    let inner = Latch()
    let note = { @Sendable (result: RunLoop.RunResult) in results.update { $0.append(result) } }
    try thread.perform {
      let loop = RunLoop.current
      loop.add(Port(), forMode: "outer")
      loop.add(Port(), forMode: "inner")
      loop.perform(inModes: ["outer"]) {
        loop.perform(inModes: ["inner"]) { inner.open() }
        note(loop.run(mode: "inner", for: .seconds(1000)))
        // As with any loop that is run repeatedly.
        for _ in 0..<3 { note(loop.run(mode: "inner", for: .seconds(1000))) }
        loop.run()
      }
      note(loop.run(mode: "outer", for: .seconds(1000)))
    }
    inner.wait()
    #expect(thread.stop() == .draining)
    let report = try thread.join()
    #expect(results.value == [.stopped, .stopped, .stopped, .stopped, .stopped])
    #expect(report.completedCount == 1)
  }

  @Test("a stop from inside a nested run stops the thread")
  func fromNestedRun() throws {
    let log = Log()
    let thread = try ResidentThread()
    try thread.performAndWait { [unowned thread] in
      let loop = RunLoop.current
      loop.add(Port(), forMode: "nested")
      loop.perform(inModes: ["nested"]) { log.write("\(thread.stop())") }
      log.write("\(loop.run(mode: "nested", for: .seconds(1000)))")
      log.write("\(loop.run(mode: .default, for: .seconds(1000)))")
    }
    try thread.join()
    #expect(log.text == "draining stopped stopped")
  }

  @Test("a stop from delayed work, a source or an observer stops the thread")
  func fromCallOuts() throws {
    for kind in 0..<3 {
      let thread = try ResidentThread()
      let object = thread.thread
      switch kind {
      case 0: try thread.perform(afterDelay: .zero) { [unowned thread] in thread.stop() }
      case 1:
        let source = RunLoop.Source { [unowned thread] in thread.stop() }
        thread.runLoop.add(source, forMode: .default)
        source.signal()
        thread.runLoop.wakeUp()
      default:
        let observer = RunLoop.Observer(activities: .beforeTimers) { [unowned thread] _, _ in thread.stop() }
        thread.runLoop.add(observer, forMode: .default)
        thread.runLoop.wakeUp()
      }
      try object.join()
      #expect(thread.state == .finished)
    }
  }

  @Test("a stop before the thread has run anything stops it")
  func before() throws {
    for policy in [ResidentThread.StopPolicy.afterPendingWork, .immediately] {
      for _ in 0..<50 {
        let thread = try ResidentThread()
        thread.stop(policy)
        #expect(try thread.join().posted == 0)
      }
    }
  }

  @Test("a stop after the end changes nothing")
  func after() throws {
    let thread = try ResidentThread()
    thread.stop()
    let report = try thread.join()
    #expect(thread.stop() == .finished && thread.stop(.immediately) == .finished)
    #expect(try thread.join() == report)
    #expect(throws: ThreadError.self) { try thread.perform {} }
    #expect(throws: ThreadError.self) { try thread.perform(afterDelay: .zero) {} }
    #expect(thread.counts.rejectedCount == report.rejectedCount + 2)
  }

  @Test("a second stop may only escalate the first")
  func again() throws {
    typealias Policy = ResidentThread.StopPolicy
    let cases: [([Policy], [ResidentThread.State], String)] = [
      ([.afterPendingWork, .afterPendingWork], [.draining, .draining], "H 1 2 3 4 due due2 stop"),
      ([.afterPendingWork, .immediately], [.draining, .stopping], "H stop"),
      ([.immediately, .afterPendingWork], [.stopping, .stopping], "H stop"),
      ([.immediately, .immediately], [.stopping, .stopping], "H stop"),
    ]
    for (policies, states, text) in cases {
      let scene = try Scene()
      #expect(policies.map { scene.thread.stop($0) } == states)
      let report = try scene.end()
      #expect(scene.log.text == text && report.posted == 8)
    }
  }

  @Test("drained work may escalate the stop, which cancels the work behind it")
  func escalateInDrain() throws {
    let log = Log()
    let hold = Hold()
    let thread = try ResidentThread()
    try thread.perform { hold.occupy() }
    hold.begun.wait()
    try thread.perform(inModes: ["never"]) { [unowned thread] in
      #expect(thread.state == .draining)
      log.write("\(thread.stop(.immediately))")
    }
    try thread.perform(inModes: ["never"]) { log.write("ran") }
    thread.stop()
    hold.released.open()
    let report = try thread.join()
    #expect(log.text == "stopping" && report.completedCount == 2 && report.cancelledCount == 1)
  }

  @Test("an immediate stop drops the work behind it, even in the same pass")
  func samePass() throws {
    let log = Log()
    let hold = Hold()
    let thread = try ResidentThread()
    try thread.perform { hold.occupy() }
    hold.begun.wait()
    try thread.perform { [unowned thread] in
      log.write("1")
      thread.stop(.immediately)
    }
    let second = try thread.perform { log.write("2") }
    hold.released.open()
    try thread.join()
    #expect(log.text == "1" && second.state == .cancelled)
  }

  @Test("during a drain all posts are rejected, even those of drained work, and runs return at once")
  func postsDuringDrain() throws {
    let log = Log()
    let hold = Hold()
    let thread = try ResidentThread(name: "drain")
    try thread.perform { hold.occupy() }
    hold.begun.wait()
    try thread.perform(inModes: ["never"]) { [unowned thread] in
      let rejection = ThreadError.stopping(thread: "thread \"drain\"")
      #expect(throws: rejection) { try thread.perform { log.write("ran") } }
      #expect(throws: rejection) { try thread.perform(afterDelay: .zero) { log.write("ran") } }
      #expect(throws: rejection) { try Thread.current.perform { log.write("ran") } }
      // On its own thread, this runs immediately and is not a post.
      try? thread.performAndWait { log.write("inline") }
      log.write("\(RunLoop.current.run(mode: .default, for: .seconds(1000)))")
    }
    thread.stop()
    #expect(throws: ThreadError.stopping(thread: "thread \"drain\"")) { try thread.perform { log.write("ran") } }
    hold.released.open()
    let report = try thread.join()
    #expect(
      log.text == "inline stopped" && report.completedCount == 2 && report.rejectedCount == 4 && report.posted == 6)
  }

  @Test("waiting for drained work returns its value, and waiting for dropped work throws an error")
  func waiters() throws {
    for policy in [ResidentThread.StopPolicy.afterPendingWork, .immediately] {
      let log = Log()
      let hold = Hold()
      let thread = try ResidentThread()
      try thread.perform { hold.occupy() }
      hold.begun.wait()
      let modes: [RunLoop.Mode] = ["0", "1", "2"]
      let waiters = modes.map { mode in
        Thread.started {
          do { log.write(try thread.performAndWait(inModes: [mode]) { mode.rawValue }) } catch {
            #expect(error as? ThreadError == .cancelled)
            log.write("error")
          }
        }
      }
      for mode in modes { thread.waitForWork(inMode: mode) }
      thread.stop(policy)
      hold.released.open()
      for waiter in waiters { try waiter.join() }
      try thread.join()
      let expected = policy == .immediately ? ["error", "error", "error"] : ["0", "1", "2"]
      #expect(log.text.split(separator: " ").map(String.init).sorted() == expected)
    }
  }

  @Test("delayed work that is running at the stop is neither cancelled nor repeated")
  func delayedRunning() throws {
    let log = Log()
    let hold = Hold()
    let thread = try ResidentThread()
    let token = try thread.perform(afterDelay: .zero) {
      hold.occupy()
      log.write("ran")
    }
    hold.begun.wait()
    #expect(thread.stop() == .draining && token.state == .running)
    hold.released.open()
    let report = try thread.join()
    #expect(log.text == "ran" && report.completedCount == 1 && report.posted == 1 && report.remainingTimerCount == 0)
  }

  @Test("of many simultaneous stops, exactly one is the first")
  func contention() throws {
    for _ in 0..<50 {
      let thread = try ResidentThread()
      let stoppers = (0..<3).map { number in
        Thread.started { thread.stop(number == 0 ? .immediately : .afterPendingWork) }
      }
      for stopper in stoppers { try stopper.join() }
      try thread.join()
      #expect(thread.state == .finished)
    }
  }
}

@Suite("A resident thread that leaves by exit", .timeLimit(.minutes(20)))
struct ResidentExitTests {
  @Test("all waits end, all accepted work is accounted for, and the end can be awaited")
  func exit() async throws {
    let log = Log()
    let hold = Hold()
    let thread = try ResidentThread(name: "leaver", onStop: { log.write("stop") })
    try thread.perform { hold.occupy() }
    hold.begun.wait()
    let waiter = Thread.started {
      #expect(throws: ThreadError.dropped(thread: "thread \"leaver\"")) {
        try thread.performAndWait(inModes: [.default, "exit"]) { Thread.exit() }
      }
    }
    thread.waitForWork(inMode: "exit")
    let behind = Thread.started {
      #expect(throws: ThreadError.cancelled) {
        try thread.performAndWait(inModes: [.default, "behind"]) { log.write("ran") }
      }
    }
    thread.waitForWork(inMode: "behind")
    let delayed = try thread.perform(afterDelay: .seconds(1000)) { log.write("ran") }
    let elsewhere = try thread.perform(inModes: ["never"]) { log.write("ran") }
    hold.released.open()
    let report = await thread.finished()
    try waiter.join()
    try behind.join()
    try thread.join()
    #expect(log.text == "stop" && delayed.state == .cancelled && elsewhere.state == .cancelled)
    #expect(report.completedCount == 1 && report.droppedCount == 1 && report.cancelledCount == 3 && report.posted == 5)
    #expect(throws: ThreadError.finished(thread: "thread \"leaver\"")) { try thread.perform {} }
  }

  @Test("exit while draining cancels the rest")
  func exitInDrain() throws {
    let hold = Hold()
    let thread = try ResidentThread()
    try thread.perform { hold.occupy() }
    hold.begun.wait()
    let leaving = try thread.perform(inModes: ["never"]) { Thread.exit() }
    let behind = try thread.perform(inModes: ["never"]) {}
    thread.stop()
    hold.released.open()
    let report = try thread.join()
    #expect(leaving.state == .dropped && behind.state == .cancelled)
    #expect(report.completedCount == 1 && report.droppedCount == 1 && report.cancelledCount == 1)
  }

  @Test("exit in onStart ends the new thread")
  func exitInStart() throws {
    let log = Log()
    let thread = try ResidentThread(onStart: { Thread.exit() }, onStop: { log.write("stop") })
    try thread.join()
    #expect(thread.state == .finished && log.text == "stop")
    #expect(throws: ThreadError.self) { try thread.perform {} }
  }

  @Test("after exit, nothing of the thread is left except what its frames retained")
  func released() throws {
    let log = Log()
    let core: WeakBox<ResidentCore>
    do {
      let token = Token(log)
      let thread = try ResidentThread(onStop: { token.touch() })
      core = WeakBox(thread.core)
      try thread.perform { Thread.exit() }
      try thread.join()
    }
    waitUntil { core.object == nil }
    waitUntil { log.text == "released" }
  }
}
