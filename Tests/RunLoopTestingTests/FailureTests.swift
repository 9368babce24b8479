// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import RunLoopThreads
import Testing

@Suite("Tests that cannot continue fail and report the reason")
struct FailureTests {
  @Test("a run that would never end fails")
  func sleepsIndefinitely() throws {
    let error = #expect(throws: VirtualTimeError.self) {
      try VirtualTime.onThisThread(realTimeLimit: .milliseconds(20)) { _ in
        RunLoop.current.add(RunLoop.Source {}, forMode: .default)
        RunLoop.current.run()
      }
    }
    #expect(
      error
        == .sleepsIndefinitely(
          after: .milliseconds(20),
          awaiting: [
            "the loop of the test's thread sleeps in the mode kCFRunLoopDefaultMode, with 1 sources, ports and descriptors "
              + "and 0 timers without a date in it"
          ]))
  }

  @Test("after a failure, the time is stopped, and every further call throws the same error")
  func staysFailed() throws {
    let errors = Box<[VirtualTimeError]>([])
    #expect(throws: VirtualTimeError.self) {
      try VirtualTime.onThisThread(realTimeLimit: .milliseconds(20)) { time in
        RunLoop.current.add(RunLoop.Source {}, forMode: .default)
        RunLoop.current.runUntilStopped()
        for _ in 0..<2 {
          do throws(VirtualTimeError) { try time.advance(by: .seconds(1)) } catch { errors.value.append(error) }
        }
        #expect(time.elapsed == .zero)
      }
    }
    #expect(errors.value.count == 2 && Set(errors.value).count == 1)
    guard case .sleepsIndefinitely? = errors.value.first else {
      Issue.record("\(errors.value)")
      return
    }
  }

  @Test("another thread ends a sleep during which nothing is due")
  func woken() throws {
    try VirtualTime.onThisThread { time in
      let loop = RunLoop.current
      loop.add(RunLoop.Source {}, forMode: .default)
      let thread = Thread { loop.perform { loop.stop() } }
      thread.start()
      #expect(loop.runUntilStopped() == .stopped)
      try thread.join()
      #expect(time.elapsed == .zero)
    }
  }

  @Test("a source that signals itself")
  func neverSleeps() throws {
    let error = #expect(throws: VirtualTimeError.self) {
      try VirtualTime.onThisThread { time in
        let source = Box<RunLoop.Source?>(nil)
        source.value = RunLoop.Source { source.value?.signal() }
        if let source = source.value { RunLoop.current.add(source, forMode: .default) }
        source.value?.signal()
        defer { source.value = nil }
        try time.advance(by: .seconds(1))
      }
    }
    #expect(error == .neverSleeps(thread: "the test's thread", at: .zero, passes: 100_000))
  }

  @Test("a body that awaits an event that never happens is an error")
  func awaitsForever() async throws {
    let error = await #expect(throws: VirtualTimeError.self) {
      try await VirtualTime.onResidentThread(realTimeLimit: .milliseconds(500)) { _ in
        let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
        for await _ in stream {}
        continuation.finish()
      }
    }
    guard case .sleepsIndefinitely(.milliseconds(500), let awaiting)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(awaiting.count == 1 && awaiting[0].contains("thread \"virtual time\""))
  }

  @Test("a blocked thread keeps the time from advancing")
  func busy() throws {
    let time = VirtualTime(realTimeLimit: .milliseconds(20))
    let worker = try ResidentThread(name: "worker", on: time)
    let held = Thread.Gate()
    try worker.perform { held.wait() }
    let error = #expect(throws: VirtualTimeError.self) { try time.advance(by: .seconds(1)) }
    #expect(error == .busy(threads: ["thread \"worker\""], after: .milliseconds(20)))
    held.open()
    // On a busy machine, the worker may take longer than the limit to fall asleep.
    while time.elapsed == .zero {
      do throws(VirtualTimeError) {
        try time.advance(by: .seconds(1))
      } catch {
        guard case .busy = error else { throw error }
      }
    }
    #expect(time.elapsed == .seconds(1))
    worker.stop()
    try worker.join()
  }

  @Test("a blocked thread keeps the test's own loop from advancing, and the error names it")
  func busyBesidesOwnLoop() throws {
    let (held, worker) = (Thread.Gate(), Box<ResidentThread?>(nil))
    let error = #expect(throws: VirtualTimeError.self) {
      try VirtualTime.onThisThread(realTimeLimit: .milliseconds(500)) { time in
        let thread = try ResidentThread(name: "worker", on: time)
        worker.value = thread
        try thread.perform { held.wait() }
        try time.advance(by: .seconds(1))
      }
    }
    held.open()
    #expect(error == .busy(threads: ["thread \"worker\""], after: .milliseconds(500)))
    try worker.value?.join()
  }

  @Test(
    "a blocked thread keeps a body's tasks from advancing, and the body is cancelled",
    .enabled(if: ResidentThread.endsSleeps, "needs Swift 6.3: before, the runtime ends sleeps in real time"))
  func busyBesidesTask() async throws {
    let (held, worker) = (Thread.Gate(), Box<ResidentThread?>(nil))
    let error = await #expect(throws: VirtualTimeError.self) {
      try await VirtualTime.onResidentThread(realTimeLimit: .milliseconds(500)) { time in
        let thread = try ResidentThread(name: "worker", on: time)
        worker.value = thread
        try thread.perform { held.wait() }
        try await Task.sleep(for: .seconds(1))
      }
    }
    held.open()
    #expect(error == .busy(threads: ["thread \"worker\""], after: .milliseconds(500)))
    _ = await worker.value?.finished()
  }

  @Test(
    "if a sleep is not a timer of a loop, a test that waits for one ends with that reason",
    .enabled(if: !ResidentThread.endsSleeps, "from Swift 6.3 on, sleeps are timers"))
  func realSleep() async throws {
    let error = await #expect(throws: VirtualTimeError.self) {
      try await VirtualTime.onResidentThread(realTimeLimit: .milliseconds(500)) { _ in
        try await Task.sleep(for: .seconds(1_000_000))
      }
    }
    let text = error.map { "\($0)" } ?? ""
    #expect(text.contains("with Swift 6.2 a task's plain sleep is no timer of a loop and takes real time"), "\(text)")
  }

  @Test("a thread that does not own the time cannot move it")
  func notOwner() throws {
    try VirtualTime.onThisThread { time in
      let errors = Box<[VirtualTimeError]>([])
      let thread = Thread {
        do throws(VirtualTimeError) { try time.advance(by: .seconds(1)) } catch { errors.value.append(error) }
        do throws(VirtualTimeError) { try time.step() } catch { errors.value.append(error) }
      }
      thread.name = "other"
      thread.start()
      try thread.join()
      #expect(errors.value == [.notOwner(thread: "thread \"other\""), .noLoop(thread: "thread \"other\"")])
    }
  }

  @Test("a thread on the time that the test owns cannot move it")
  func notOwnerOnResidentThread() throws {
    let time = VirtualTime()
    let worker = try ResidentThread(name: "worker", on: time)
    let error = try worker.performAndWait {
      do throws(VirtualTimeError) {
        try time.advance(by: .seconds(1))
        return VirtualTimeError?.none
      } catch {
        return error
      }
    }
    #expect(error == .notOwner(thread: "thread \"worker\""))
    worker.stop()
    try worker.join()
  }

  @Test("without a loop on the time, the caller cannot make a pass")
  func noLoop() throws {
    let error = #expect(throws: VirtualTimeError.self) { try VirtualTime().step() }
    #expect(error == .noLoop(thread: "the calling thread"))
  }

  @Test("the body's own error is thrown")
  func bodyError() throws {
    #expect(throws: CancellationError.self) {
      try VirtualTime.onThisThread { _ in throw CancellationError() }
    }
  }

  @Test("every error of a virtual time has a description")
  func descriptions() {
    let errors: [VirtualTimeError] = [
      .sleepsIndefinitely(after: .seconds(1), awaiting: []), .neverSleeps(thread: "t", at: .zero, passes: 1),
      .neverIdle(at: .zero, moves: 1, pending: ["p"]), .busy(threads: ["t"], after: .seconds(1)),
      .notOwner(thread: "t"), .insideEvent(thread: "t"), .noLoop(thread: "t"), .threadIsEnding(thread: "t"),
    ]
    for (index, error) in errors.enumerated() {
      let text = "\(error)"
      #expect(text.count > 40 && errors[..<index].allSatisfy { "\($0)" != text })
    }
  }
}
