// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopThreads

private final class CallOutCount: Sendable {
  private let calls = Atomic<Int>(0)

  init(_ loop: RunLoop) {
    loop.setTraceHook { [unowned self] event in
      if event.kind == .callOut(.block) { calls.wrappingAdd(1, ordering: .relaxed) }
    }
  }

  var value: Int { calls.load(ordering: .relaxed) }
}

@Suite("Actors and tasks on a resident thread", .timeLimit(.minutes(20)))
struct ExecutorTests {
  @Test("an actor runs on its resident thread")
  func actor() async throws {
    let thread = try ResidentThread()
    let id = try thread.performAndWait { RunLoop.callingThreadID }
    let pinned = Pinned(thread)
    #expect(await pinned.threadID == id)
    #expect(await pinned.bump() == 1)
    #expect(await pinned.count == 1)
  }

  @Test("each call from another executor counts as a job in the report, and performed work does not")
  func jobs() async throws {
    let thread = try ResidentThread()
    let pinned = Pinned(thread)
    for _ in 0..<10 { await pinned.bump() }
    try thread.performAndWait {}
    #expect(thread.counts.jobCount == 10)
    thread.stop()
    let report = await thread.finished()
    #expect(report.jobCount == 10 && report.completedCount == 1)
    // Late jobs are not run by the thread.
    await pinned.bump()
    #expect(thread.counts.jobCount == 10 && thread.counts.lateJobCount == 1)
  }

  @Test("many callers of an actor run one after another")
  func isolation() async throws {
    let pinned = Pinned(try ResidentThread())
    await withTaskGroup { group in
      for _ in 0..<200 { group.addTask { await pinned.slowBump() } }
    }
    #expect(await pinned.count == 200)
  }

  @Test("a call between two actors on the same thread enqueues nothing")
  func actorToActor() async throws {
    let thread = try ResidentThread()
    let (first, second) = (Pinned(thread), Pinned(thread))
    let calls = CallOutCount(thread.runLoop)
    await first.bump(second, times: 1000)
    // The job that brought the caller to the first actor, or that of its return.
    #expect(calls.value <= 2)
    #expect(await second.count == 1000)
    thread.runLoop.setTraceHook(nil)
    withExtendedLifetime(calls) {}
  }

  @Test("a task that prefers the thread runs there, and visits its actors with at most two jobs")
  func taskToActor() async throws {
    let thread = try ResidentThread()
    let id = try thread.performAndWait { RunLoop.callingThreadID }
    let pinned = Pinned(thread)
    for calls in [1, 100] {
      let count = CallOutCount(thread.runLoop)
      let task = Task(executorPreference: thread) {
        let before = count.value
        for _ in 0..<calls { await pinned.bump() }
        return (count.value - before, RunLoop.callingThreadID)
      }
      let (jobs, place) = await task.value
      #expect(jobs <= 2 * calls && place == id)
      thread.runLoop.setTraceHook(nil)
      withExtendedLifetime(count) {}
    }
  }

  @Test("a task that prefers the thread resumes with one job, and each child task is one job")
  func jobsOfTasks() async throws {
    let thread = try ResidentThread()
    let task = Task(executorPreference: thread) {
      let before = thread.counts.jobCount
      for _ in 0..<100 {
        try await withCheckedThrowingContinuation { continuation in
          do { try thread.perform { continuation.resume() } } catch { continuation.resume(throwing: error) }
        }
      }
      let continued = thread.counts.jobCount - before
      await withTaskGroup { group in for _ in 0..<100 { group.addTask { _ = RunLoop.callingThreadID } } }
      return (continued, thread.counts.jobCount - before - continued)
    }
    let (continued, children) = try await task.value
    #expect(continued == 100)
    // And at most one that resumes the task after the last child.
    #expect((100...101).contains(children))
  }

  @Test("a task's preference extends to its callees, and ends with its scope")
  func preference() async throws {
    let thread = try ResidentThread()
    let id = try thread.performAndWait { RunLoop.callingThreadID }
    let ids = await withTaskExecutorPreference(thread) {
      async let child = RunLoop.callingThreadID
      return await [RunLoop.callingThreadID, child]
    }
    #expect(ids == [id, id] && RunLoop.callingThreadID != id)
  }

  @Test("a task retains the thread it prefers until the task ends")
  func taskHolds() async throws {
    let hold = Hold()
    func start() throws -> (Thread, WeakBox<ResidentThread>, Task<Int32, Never>) {
      let thread = try ResidentThread()
      try thread.perform { hold.occupy() }
      let task = Task(executorPreference: thread) {
        await Task.yield()
        return RunLoop.callingThreadID
      }
      return (thread.thread, WeakBox(thread), task)
    }
    let (object, handle, task) = try start()
    #expect(handle.object?.state == .running)
    hold.released.open()
    #expect(await task.value != RunLoop.callingThreadID)
    try object.join()
    waitUntil { handle.object == nil }
  }

  @Test("a sleep in a task that prefers the thread ends there, and the task continues")
  func sleep() async throws {
    let thread = try ResidentThread()
    let id = try thread.performAndWait { RunLoop.callingThreadID }
    let task = Task(executorPreference: thread) {
      try await Task.sleep(for: .milliseconds(1))
      return RunLoop.callingThreadID
    }
    #expect(try await task.value == id)
    let cancelled = Task(executorPreference: thread) { try await Task.sleep(for: .seconds(1000)) }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
  }

  @Test("plain work on the thread, such as a C callback, may assume the actor's isolation")
  func assumeIsolated() throws {
    let thread = try ResidentThread()
    let pinned = Pinned(thread)
    try thread.performAndWait {
      #expect(pinned.assumeIsolated { $0.bump() } == 1)
      pinned.preconditionIsolated()
      thread.checkIsolated()
      #expect(thread.isIsolatingCurrentContext() == true)
    }
    CallBack.pinned.value = pinned
    try thread.performAndWait {
      let numbers: [Int32] = [1]
      _ = bsearch(numbers, numbers, numbers.count, MemoryLayout<Int32>.size) { _, _ in
        CallBack.pinned.value.map { Int32($0.assumeIsolated { $0.bump() }) } ?? 0
      }
      #expect(pinned.assumeIsolated { $0.bump() } == 3)
    }
    CallBack.pinned.value = nil
  }

  @Test("timers, sources and observers of its loop may also assume the actor's isolation")
  func callOuts() throws {
    let thread = try ResidentThread()
    let pinned = Pinned(thread)
    let done = Latch()
    try thread.perform(afterDelay: .zero) {
      pinned.assumeIsolated { _ = $0.bump() }
      let source = RunLoop.Source {
        pinned.assumeIsolated { _ = $0.bump() }
        done.open()
      }
      RunLoop.current.add(source, forMode: .default)
      source.signal()
    }
    thread.runLoop.wakeUp()
    done.wait()
    #expect(try thread.performAndWait { pinned.assumeIsolated { $0.bump() } } == 3)
  }

  @Test("on other threads, the actor's isolation is denied")
  func notIsolated() async throws {
    let thread = try ResidentThread()
    let other = try ResidentThread()
    #expect(thread.isIsolatingCurrentContext() == false)
    #expect(try other.performAndWait { thread.isIsolatingCurrentContext() } == false)
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      try ResidentThread(name: "the actor's").checkIsolated()
    }
    let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(message.contains("the actor's"))
    await #expect(processExitsWith: .failure) {
      let pinned = Pinned(try ResidentThread())
      pinned.assumeAndBump()
    }
  }

  @Test("an actor method that runs the loop serves blocks and timers there, but none of its own jobs")
  func nestedRun() async throws {
    let log = Log()
    let thread = try ResidentThread()
    let nesting = Nesting(thread)
    await nesting.nest(log)
    for task in await nesting.tasks { await task.value }
    #expect(log.text == "[ block timer ] job call")
  }

  @Test("a method that waits for work on its own thread runs it immediately")
  func performInJob() async throws {
    let thread = try ResidentThread()
    let id = try await Task(executorPreference: thread) {
      try thread.performAndWait { RunLoop.callingThreadID }
    }.value
    #expect(try thread.performAndWait { RunLoop.callingThreadID } == id)
  }

  @Test("a run nested in a block serves the jobs posted with the block")
  func jobsOfTheBatch() async throws {
    let log = Log()
    let hold = Hold()
    let done = Latch()
    let thread = try ResidentThread()
    let pinned = Pinned(thread)
    try thread.perform { hold.occupy() }
    hold.begun.wait()
    thread.runLoop.perform(inModes: [.common]) {
      log.write("[")
      RunLoop.current.run(mode: .default, for: .zero)
      log.write("]")
      done.open()
    }
    let job = Task.immediate { await pinned.write("job", log) }
    hold.released.open()
    await job.value
    done.wait()
    #expect(log.text == "[ job ]")
  }

  @Test("blocks and jobs are served in the order of their posts")
  func order() async throws {
    let log = Log()
    let hold = Hold()
    let thread = try ResidentThread()
    let pinned = Pinned(thread)
    try thread.perform { hold.occupy() }
    thread.runLoop.perform(inModes: [.common]) { log.write("1") }
    let first = Task.immediate { await pinned.write("2", log) }
    thread.runLoop.perform(inModes: [.common]) { log.write("3") }
    let second = Task.immediate { await pinned.write("4", log) }
    hold.released.open()
    await first.value
    await second.value
    #expect(log.text == "1 2 3 4")
  }
}

private actor Nesting {
  nonisolated let thread: ResidentThread
  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }
  private(set) var tasks: [Task<Void, Never>] = []

  init(_ thread: ResidentThread) { self.thread = thread }

  func nest(_ log: Log) {
    log.write("[")
    // The jobs are in the loop when this returns.
    tasks.append(Task(executorPreference: thread) { log.write("job") })
    let call = Box<Task<Void, Never>?>(nil)
    let caller = Thread.started { call.value = Task.immediate { await self.write("call", log) } }
    try? caller.join()
    if let call = call.value { tasks.append(call) }
    runNested(log)
    log.write("]")
  }

  func write(_ entry: String, _ log: Log) { log.write(entry) }

  private nonisolated func runNested(_ log: Log) {
    let loop = RunLoop.current
    loop.perform(inModes: [.default]) { log.write("block") }
    loop.add(
      Timer(deadline: loop.now) { _ in
        log.write("timer")
        loop.stop()
      }, forMode: .default)
    loop.run(mode: .default, for: .unlimited)
  }
}

private enum CallBack {
  static let pinned = Box<Pinned?>(nil)
}
