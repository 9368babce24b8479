// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopThreads

// R116, L24
@Suite("The end of a thread in a call-out of its loop", .timeLimit(.minutes(20)))
struct ThreadExitInCallOutTests {
  /// Runs a loop with an item on a thread that the item's first call ends, and then on another.
  private func onTwoThreads(_ add: @escaping @Sendable (RunLoop) -> Void) throws {
    let thread = Thread.started {
      RunLoop.current.keepAlive()
      add(RunLoop.current)
      RunLoop.current.run(mode: .default, for: .unlimited)
    }
    try thread.join()
    onNewThread {
      RunLoop.current.keepAlive()
      add(RunLoop.current)
      RunLoop.current.run(mode: .default, for: .unlimited)
    }
  }

  /// The item's body, which ends its first thread and stops its second loop.
  private func work(_ log: Log) -> @Sendable () -> Void {
    let calls = Counter()
    return {
      if calls.add() == 1 { Thread.exit() }
      log.write("called")
      RunLoop.current.stop()
    }
  }

  @Test(
    "a timer whose call-out ends its thread fires in another loop",
    arguments: [nil, Duration.milliseconds(1)])
  func timer(interval: Duration?) throws {
    let log = Log()
    let body = work(log)
    let timer = Timer(deadline: RunLoop.current.now, interval: interval) { _ in body() }
    try onTwoThreads { loop in log.write("\(loop.add(timer, forMode: .default) as Bool) \(timer.isFiring)") }
    timer.invalidate()
    #expect(log.text == "true false true false called")
  }

  @Test("timers due with one whose call-out ends their thread fire in another loop")
  func timers() throws {
    let log = Log()
    let first = Timer(deadline: RunLoop.current.now) { timer in
      timer.invalidate()
      Thread.exit()
    }
    let second = Timer(deadline: RunLoop.current.now) { _ in
      log.write("second")
      RunLoop.current.stop()
    }
    try onTwoThreads { loop in
      for timer in [first, second] { log.write("\(loop.add(timer, forMode: .default) as Bool)") }
    }
    #expect(log.text == "true true false true second")
  }

  @Test("an observer whose call-out ends its thread is called in another loop")
  func observer() throws {
    let log = Log()
    let body = work(log)
    let observer = RunLoop.Observer(activities: .beforeWaiting) { _, _ in body() }
    try onTwoThreads { loop in log.write("\(loop.add(observer, forMode: .default))") }
    observer.invalidate()
    #expect(log.text == "true true called")
  }

  @Test("observers around a nested run that ends their thread are called in another loop, even one that had left")
  func nestedObservers() throws {
    let log = Log()
    let inner = work(log)
    let exits = RunLoop.Observer(activities: .entry) { _, _ in inner() }
    let nests = RunLoop.Observer(activities: .beforeTimers) { observer, _ in
      log.write("nests")
      RunLoop.current.remove(observer, forMode: .default)
      RunLoop.current.keepAlive("nested")
      RunLoop.current.add(exits, forMode: "nested")
      RunLoop.current.run(mode: "nested", for: .unlimited)
      RunLoop.current.stop()
    }
    try onTwoThreads { loop in log.write("\(loop.add(nests, forMode: .default) as Bool)") }
    #expect(log.text == "true nests true nests called")
  }

  @Test("a timer moved to another loop in the call-out that ends its thread fires there")
  func movedTimer() throws {
    let log = Log()
    let made = Box<RunLoop?>(nil)
    let isRunning = Latch()
    let other = startThread {
      RunLoop.current.keepAlive()
      made.value = RunLoop.current
      RunLoop.current.perform { isRunning.open() }
      RunLoop.current.run(mode: .default, for: .unlimited)
    }
    isRunning.wait()
    let calls = Counter()
    let timer = Timer(deadline: RunLoop.current.now) { timer in
      if calls.add() == 1 {
        RunLoop.current.remove(timer, forMode: .default)
        log.write("\(made.value?.add(timer, forMode: .default) ?? false)")
        Thread.exit()
      }
      log.write("called")
      RunLoop.current.stop()
    }
    let thread = Thread.started {
      RunLoop.current.add(timer, forMode: .default)
      RunLoop.current.run(mode: .default, for: .unlimited)
    }
    try thread.join()
    other.result()
    #expect(log.text == "true called")
  }
}
