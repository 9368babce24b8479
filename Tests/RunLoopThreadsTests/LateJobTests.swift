// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopThreads

@Suite("Jobs at the end of a resident thread", .timeLimit(.minutes(20)))
struct LateJobTests {
  @Test(
    "jobs that are already enqueued always run on the thread, before it closes",
    arguments: [ResidentThread.StopPolicy.afterPendingWork, .immediately])
  func enqueued(policy: ResidentThread.StopPolicy) async throws {
    let log = Log()
    let hold = Hold()
    let thread = try ResidentThread(onStop: { log.write("stop") })
    let id = try thread.performAndWait { RunLoop.callingThreadID }
    let pinned = Pinned(thread)
    try thread.perform { hold.occupy() }
    let tasks = (0..<5).map { number in
      Task(executorPreference: thread) {
        log.write("\(number)")
        return RunLoop.callingThreadID
      }
    }
    let calls = (0..<5).map { _ in Task.immediate { await pinned.bump() } }
    hold.begun.wait()
    thread.stop(policy)
    hold.released.open()
    for task in tasks { #expect(await task.value == id) }
    try thread.join()
    #expect(log.text == "0 1 2 3 4 stop")
    for call in calls { _ = await call.value }
    #expect(await pinned.count == 5)
  }

  @Test("jobs already enqueued when the thread leaves by exit still run")
  func enqueuedAtExit() async throws {
    let hold = Hold()
    let thread = try ResidentThread()
    let id = try thread.performAndWait { RunLoop.callingThreadID }
    try thread.perform {
      hold.occupy()
      Thread.exit()
    }
    hold.begun.wait()
    let task = Task(executorPreference: thread) { RunLoop.callingThreadID }
    hold.released.open()
    #expect(await task.value == id)
    try thread.join()
  }

  @Test("jobs enqueued after the thread's end run one after another, and isolated")
  func late() async throws {
    let thread = try ResidentThread()
    let id = try thread.performAndWait { RunLoop.callingThreadID }
    let pinned = Pinned(thread)
    await pinned.slowBump()
    thread.stop()
    try thread.join()
    #expect(await pinned.threadID != id)
    await withTaskGroup { group in
      for number in 0..<100 {
        if number.isMultiple(of: 2) {
          group.addTask {
            await pinned.slowBump()
            await pinned.bumpAssumingIsolation()
          }
        } else {
          group.addTask(executorPreference: thread) { await pinned.slowBump() }
        }
      }
    }
    #expect(await pinned.count == 151)
  }

  @Test("a job enqueued while the last ones run waits for their end and for the thread's")
  func lateDuringEnd() async throws {
    let log = Log()
    let hold = Hold()
    let thread = try ResidentThread(onStop: { log.write("stop") })
    try thread.perform { hold.occupy() }
    hold.begun.wait()
    @Sendable func place() -> String { thread.thread.isFinished ? "late" : "early" }
    let first = Task(executorPreference: thread) {
      log.write(place())
      // The jobs enqueued by those jobs run too.
      return Task(executorPreference: thread) {
        log.write("[ \(place())")
        let last = Task(executorPreference: thread) { log.write(place()) }
        for _ in 0..<1000 { sched_yield() }
        log.write("]")
        return last
      }
    }
    thread.stop(.immediately)
    hold.released.open()
    await first.value.value.value
    #expect(log.text == "early [ early ] stop late")
  }

  @Test("an endless chain of jobs does not delay an immediate stop")
  func endlessJobs() async throws {
    let thread = try ResidentThread()
    let isOver = Box(false)
    let begun = Latch()
    let task = Task(executorPreference: thread) {
      begun.open()
      while !isOver.value { await Task.yield() }
    }
    begun.wait()
    thread.stop()
    thread.stop(.immediately)
    try thread.join()
    isOver.value = true
    await task.value
  }

  @Test("an actor may be released by its last job, along with its thread's only handle")
  func lastReference() async throws {
    for _ in 0..<50 {
      let log = Log()
      let isAlone = Box(false)
      let (task, object, core) = try await startOwner(log, isAlone)
      isAlone.value = true
      await task.value
      try object.join()
      #expect(log.text == "job gone stop" || log.text == "job stop gone")
      waitUntil { core.object == nil }
    }
  }

  private func startOwner(
    _ log: Log, _ isAlone: Box<Bool>
  ) async throws -> (Task<Void, Never>, Thread, WeakBox<ResidentCore>) {
    let thread = try ResidentThread(onStop: { log.write("stop") })
    let object = thread.thread
    let core = WeakBox(thread.core)
    return (await Owner(thread, log).finish(isAlone), object, core)
  }
}

private actor Owner {
  nonisolated let thread: ResidentThread
  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }
  private let log: Log

  init(_ thread: ResidentThread, _ log: Log) {
    self.thread = thread
    self.log = log
  }

  deinit { log.write("gone") }

  /// Begins a task on the actor, which then holds the only reference to it.
  func finish(_ isAlone: Box<Bool>) -> Task<Void, Never> {
    Task {
      while !isAlone.value { await Task.yield() }
      self.log.write("job")
    }
  }
}
