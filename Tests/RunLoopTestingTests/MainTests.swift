// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import RunLoopThreads
import Testing

@Suite("asMain")
struct MainTests {
  @Test("the main loop, the main thread and isMainThread refer to the test's thread")
  func names() throws {
    try VirtualTime.asMain { _ in
      #expect(RunLoop.main === RunLoop.current)
      #expect(Thread.main === Thread.current)
      #expect(Thread.mainThread === Thread.current)
      #expect(Thread.isMainThread)
      #expect(Thread.current.isMainThread)
      #expect(Thread.main.runLoop === RunLoop.main)
    }
  }

  @Test("onThisThread makes its loop the main loop only on the real main thread")
  func notAsMain() throws {
    let wasMain = Thread.isMainThread
    try VirtualTime.onThisThread { _ in
      #expect(Thread.isMainThread == wasMain)
      #expect((RunLoop.main === RunLoop.current) == wasMain)
    }
  }

  @Test("code for the main thread is tested: timers, blocks and posted work")
  func code() throws {
    try VirtualTime.asMain { time in
      RunLoop.main.perform { time.log.write("block") }
      RunLoop.main.schedule(in: .seconds(3)) { _ in time.log.write("timer \(Thread.isMainThread)") }
      try Thread.main.perform { time.log.write("work") }
      try time.advance(by: .seconds(3))
      #expect(time.log.timedCallOuts == "B@0 block@0 S0@0 work@0 T@3000 timer true@3000")
    }
  }

  @Test("asMain does not affect other threads")
  func otherThreads() throws {
    try VirtualTime.asMain { _ in
      let test = RunLoop.main
      let seen = Box<[Bool]>([])
      let thread = Thread { seen.value = [RunLoop.main === test, Thread.isMainThread, Thread.main.runLoop === test] }
      thread.start()
      try thread.join()
      #expect(seen.value == [false, false, false])
    }
  }

  @Test("after asMain everything is as before")
  func afterwards() throws {
    let (main, thread, isMain) = (RunLoop.main, Thread.main, Thread.isMainThread)
    try VirtualTime.asMain { _ in #expect(RunLoop.main !== main && Thread.main !== thread) }
    #expect(RunLoop.main === main && Thread.main === thread && Thread.isMainThread == isMain)
    #expect(throws: CancellationError.self) { try VirtualTime.asMain { _ in throw CancellationError() } }
    #expect(RunLoop.main === main && Thread.main === thread && Thread.isMainThread == isMain)
  }

  @Test("many concurrent asMain bodies do not affect each other", arguments: 0..<50)
  func parallel(number: Int) throws {
    try VirtualTime.asMain { time in
      for second in 1...20 {
        RunLoop.main.schedule(in: .seconds(second)) { _ in time.log.write("\(number)/\(second)") }
      }
      let loop = RunLoop.main
      try time.advance(by: .seconds(20))
      #expect(RunLoop.main === loop)
      #expect(time.log.callOuts == (1...20).map { "T \(number)/\($0)" }.joined(separator: " "))
    }
  }

  @Test("in nested asMain bodies, the inner loop is the main loop until it ends")
  func nested() throws {
    try VirtualTime.asMain { _ in
      let outer = RunLoop.main
      try VirtualTime.asMain { _ in #expect(RunLoop.main !== outer) }
      #expect(RunLoop.main === outer && Thread.isMainThread)
    }
  }

  @Test(
    "a resident thread and its tasks can stand in for the main thread",
    .enabled(if: ResidentThread.endsSleeps, "needs Swift 6.3: before, the runtime ends sleeps in real time"))
  func resident() async throws {
    let answers = try await VirtualTime.onResidentThread(asMain: true) { _ in
      let before = (RunLoop.main === RunLoop.current, Thread.isMainThread)
      try await Task.sleep(for: .seconds(10))
      async let child = (RunLoop.main === RunLoop.current && Thread.isMainThread)
      return [before.0, before.1, RunLoop.main === RunLoop.current, Thread.isMainThread, await child]
    }
    #expect(answers == [true, true, true, true, true])
  }
}
