// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import RunLoopThreads
import Testing

@Suite("Several loops on one time")
struct ThreadTests {
  @Test("threads due at the same date run one after another, in the order of their creation")
  func order() throws {
    let time = VirtualTime()
    let first = try ResidentThread(name: "first", on: time)
    let second = try ResidentThread(name: "second", on: time)
    for (thread, name) in [(second, "b"), (first, "a")] {
      thread.runLoop.schedule(in: .seconds(1), repeating: .seconds(1)) { _ in time.log.write(name) }
    }
    try time.advance(by: .seconds(3))
    let turn = { (ms: Int) in "first:T@\(ms) a@\(ms) second:T@\(ms) b@\(ms)" }
    #expect(time.log.timedCallOuts == [1000, 2000, 3000].map(turn).joined(separator: " "))
    for thread in [first, second] {
      thread.stop(.immediately)
      try thread.join()
    }
  }

  @Test("the test's own loop runs after the others due at the same date")
  func ownLast() throws {
    try VirtualTime.onThisThread { time in
      let worker = try ResidentThread(name: "worker", on: time)
      RunLoop.current.schedule(in: .seconds(1)) { _ in time.log.write("own") }
      worker.runLoop.schedule(in: .seconds(1)) { _ in time.log.write("worker") }
      try time.advance(by: .seconds(1))
      #expect(time.log.callOuts == "worker:T worker T own")
      #expect(worker.runLoop.now == time.now)
      worker.stop()
      try worker.join()
    }
  }

  @Test("work posted to the test's loop at the end of a duration is done before the call returns")
  func handsBack() throws {
    try VirtualTime.onThisThread { time in
      let worker = try ResidentThread(name: "worker", on: time)
      let loop = RunLoop.current
      worker.runLoop.schedule(in: .seconds(1)) { _ in loop.perform { time.log.write("result") } }
      try time.advance(by: .seconds(1))
      #expect(time.log.callOuts == "worker:T B result")
      worker.stop()
      try worker.join()
    }
  }

  @Test("the time is stopped while the test waits for work on a thread")
  func waits() throws {
    try VirtualTime.onThisThread { time in
      let worker = try ResidentThread(name: "worker", on: time)
      RunLoop.current.schedule(in: .seconds(1)) { _ in time.log.write("own") }
      let elapsed = try worker.performAndWait { time.elapsed }
      #expect(elapsed == .zero && time.log.callOuts == "worker:S0")
      try worker.perform(afterDelay: .seconds(2)) { time.log.write("delayed") }
      try time.advance(by: .seconds(2))
      #expect(time.log.timedCallOuts == "worker:S0@0 T@1000 own@1000 worker:T@2000 delayed@2000")
      worker.stop()
      try worker.join()
    }
  }

  @Test("the next date is the earliest of all loops")
  func next() throws {
    let time = VirtualTime()
    let worker = try ResidentThread(name: "worker", on: time)
    #expect(time.timeUntilNext == nil)
    worker.runLoop.schedule(in: .seconds(7)) { _ in }
    #expect(time.timeUntilNext == .seconds(7))
    #expect(time.pending.map(\.thread) == ["thread \"worker\""])
    try time.runUntilIdle()
    #expect(time.elapsed == .seconds(7) && time.timeUntilNext == nil)
    worker.stop()
    try worker.join()
  }

  @Test("a thread's report on virtual time counts task jobs")
  func countsJobs() async throws {
    let worker = try ResidentThread(name: "worker", on: VirtualTime())
    for _ in 0..<3 { await Task(executorPreference: worker) {}.value }
    worker.stop()
    #expect(await worker.finished().jobCount == 3)
  }

  @Test("a thread that ends lets the time continue")
  func ends() throws {
    try VirtualTime.onThisThread { time in
      let worker = try ResidentThread(name: "worker", on: time)
      worker.runLoop.schedule(in: .seconds(1)) { _ in worker.stop() }
      RunLoop.current.schedule(in: .seconds(5)) { _ in time.log.write("own") }
      try time.advance(by: .seconds(5))
      #expect(
        time.log.timedCallOuts == "worker:T@1000 own@5000" || time.log.timedCallOuts == "worker:T@1000 T@5000 own@5000")
      #expect(try worker.join().remainingTimerCount == 0)
    }
  }

  @Test("the log is the same a thousand times")
  func deterministic() throws {
    let logs = try (0..<1000).map { _ in
      try VirtualTime.onThisThread { time in
        let threads = try (1...2).map { try ResidentThread(name: "\($0)", on: time) }
        RunLoop.current.schedule(in: .milliseconds(5), repeating: .milliseconds(5)) { _ in time.log.write("own") }
        for (number, thread) in threads.enumerated() {
          thread.runLoop.schedule(in: .milliseconds(10), repeating: .milliseconds(10 * (number + 1))) { _ in
            time.log.write("t\(number)")
          }
        }
        try time.advance(by: .milliseconds(40))
        for thread in threads {
          thread.stop(.immediately)
          try thread.join()
        }
        return time.log.timedCallOuts
      }
    }
    #expect(Set(logs).count == 1)
    #expect(logs[0].hasPrefix("T@5 own@5 1:T@10 t0@10 2:T@10 t1@10 T@10 own@10 T@15 own@15 1:T@20 t0@20 T@20 own@20"))
  }
}
