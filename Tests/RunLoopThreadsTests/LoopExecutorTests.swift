// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopThreads
import TestSupport
import Testing

@Suite("A run loop as an executor", .timeLimit(.minutes(5)))
struct LoopExecutorTests {
  private actor Device {
    nonisolated let executor: RunLoop.Executor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    private var numbers: [Int] = []

    init(_ loop: RunLoop) { executor = loop.executor }

    func add(_ number: Int) -> pthread_t {
      numbers.append(number)
      return pthread_self()
    }

    func sleepAndAdd(_ number: Int) async throws -> pthread_t {
      try await Task.sleep(for: .milliseconds(1))
      return add(number)
    }

    var all: [Int] { numbers }

    nonisolated func assumed() -> Int { assumeIsolated { $0.numbers.count } }
  }

  @Test("an actor runs on a thread created by C code as long as that thread runs its loop")
  func thread() async throws {
    let serving = SourceRig.startLoop()
    let (loop, thread) = (serving.loop, Box<pthread_t?>(nil))
    await elsewhere {
      let isDone = Latch()
      loop.perform {
        thread.value = pthread_self()
        isDone.open()
      }
      isDone.wait()
    }
    let device = Device(loop)
    #expect(device.executor === loop.executor)
    for number in 0..<10 { #expect(await device.add(number) == thread.value) }
    #expect(try await device.sleepAndAdd(10) == thread.value)
    #expect(await device.all == Array(0...10))
    await elsewhere {
      let isDone = Latch()
      loop.perform {
        #expect(device.assumed() == 11)
        isDone.open()
      }
      isDone.wait()
      loop.perform { RunLoop.current.stop() }
      serving.thread.join()
    }
    // The thread has ended, but no job is lost.
    #expect(await device.add(11) != thread.value)
    #expect(await device.all == Array(0...11))
    #expect(try await device.sleepAndAdd(12) != thread.value)
  }

  @Test("jobs waiting when the thread ends run at its end")
  func end() async throws {
    let loop = Box<RunLoop?>(nil)
    let mayEnd = Latch()
    let thread = Thread {
      loop.value = .current
      mayEnd.wait()
    }
    try thread.tryStart()
    await elsewhere { waitUntil { loop.value != nil } }
    let device = Device(try #require(loop.value))
    let task = Task { await device.add(1) }
    await elsewhere {
      waitUntil { loop.value?.faceReading.waitingBlocks == 1 }
      mayEnd.open()
    }
    _ = await task.value
    #expect(await device.all == [1])
    await elsewhere { try? thread.join() }
  }

  @Test("the executor of a loop knows its thread")
  func isolation() async {
    let serving = SourceRig.startLoop()
    let executor = serving.loop.executor
    #expect(executor.isIsolatingCurrentContext() == false)
    await elsewhere {
      let isDone = Latch()
      serving.loop.perform {
        executor.checkIsolated()
        isDone.open()
      }
      isDone.wait()
      serving.loop.perform { RunLoop.current.stop() }
      serving.thread.join()
    }
  }
}

@Suite("A resident thread for a body", .timeLimit(.minutes(5)))
struct WithResidentThreadTests {
  private struct Failure: Error {}

  @Test("accepted work runs when the body of withResidentThread returns")
  func returns() async throws {
    let log = Log()
    let report = Box<ResidentThread.StopReport?>(nil)
    let kept = Box<ResidentThread?>(nil)
    let answer = try await withResidentThread(name: "own", report: { report.value = $0 }) { thread in
      kept.value = thread
      for number in 0..<10 { try thread.perform { log.write("\(number)") } }
      return try await thread.run { 42 }
    }
    #expect(answer == 42)
    #expect(log.text == "0 1 2 3 4 5 6 7 8 9")
    #expect(report.value?.completedCount == 11)
    #expect(kept.value?.state == .finished)
  }

  @Test("waiting work is cancelled when the body throws or its task is cancelled", arguments: [false, true])
  func throwing(cancels: Bool) async throws {
    let report = Box<ResidentThread.StopReport?>(nil)
    let isOccupied = Latch()
    let mayGoOn = Latch()
    let task = Task {
      try await withResidentThread(report: { report.value = $0 }) { thread in
        try thread.perform {
          isOccupied.open()
          mayGoOn.wait()
        }
        await elsewhere { isOccupied.wait() }
        for _ in 0..<5 { try thread.perform { Issue.record("work that was to be cancelled has run") } }
        thread.stop(.immediately)
        mayGoOn.open()
        if cancels { try await Task.sleep(for: .seconds(1000)) }
        throw Failure()
      }
    }
    if cancels {
      await elsewhere { mayGoOn.wait() }
      task.cancel()
    }
    let result = await task.result
    #expect(throws: (any Error).self) { try result.get() }
    #expect(report.value?.cancelledCount == 5)
    #expect(report.value?.completedCount == 1)
  }

  @Test("waiting work is cancelled when the task is cancelled after the body has returned")
  func cancelledLater() async throws {
    let report = Box<ResidentThread.StopReport?>(nil)
    let hold = Hold()
    let kept = Box<ResidentThread?>(nil)
    let task = Task {
      try await withResidentThread(report: { report.value = $0 }) { thread in
        kept.value = thread
        try thread.perform { hold.occupy() }
        // The work must have begun before the stop.
        await elsewhere { hold.begun.wait() }
        for _ in 0..<5 { try thread.perform { Issue.record("work that was to be cancelled has run") } }
      }
    }
    while kept.value?.state != .draining { await Task.yield() }
    task.cancel()
    while kept.value?.state != .stopping { await Task.yield() }
    hold.released.open()
    try await task.value
    #expect(report.value?.cancelledCount == 5)
    #expect(report.value?.completedCount == 1)
  }
}
