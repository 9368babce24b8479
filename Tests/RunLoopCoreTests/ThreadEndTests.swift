// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The end of a thread and its loop", .timeLimit(.minutes(20)))
struct ThreadEndTests {
  @Test(
    "its sources leave with a cancel call-out for each mode, on the thread, whose loop it still is", .rule(.r73, .r115))
  func cancels() {
    let log = Log()
    let (source, loop) = onNewThread {
      let source = RunLoop.Source(
        cancel: { loop, mode in
          log.write("cancel:\(mode):\(RunLoop.current === loop):\(loop.threadID == RunLoop.callingThreadID)")
        },
        perform: { log.write("performed") })
      RunLoop.current.add(source, forMode: .common)
      RunLoop.current.add(source, forMode: "A")
      source.signal()
      log.write("end")
      return (source, RunLoop.current)
    }
    #expect(log.text == "end cancel:kCFRunLoopDefaultMode:true:true cancel:A:true:true")
    for mode in [.default, "A", .common] as [RunLoop.Mode] { #expect(!loop.contains(source, forMode: mode)) }
  }

  @Test(
    "an ending loop accepts and drops blocks until it rejects them, and only then has ended",
    .rule(.r115, .m14, .m21))
  func endOfBlocks() {
    let log = Log()
    let loop = onNewThread {
      let source = RunLoop.Source(
        cancel: { loop, _ in
          log.write("\(loop.hasEnded) \(loop.perform {} as Bool) \(loop.add(RunLoop.Source {}, forMode: .default))")
        },
        perform: {})
      RunLoop.current.add(source, forMode: .default)
      return RunLoop.current
    }
    log.write("\(loop.hasEnded) \(loop.perform {} as Bool) \(loop.statistics.droppedBlockCount)")
    #expect(log.text == "false true false true false 1")
  }

  @Test("at the thread's end a source stays valid and signalled, and another loop may perform it", .rule(.r116))
  func freeSource() {
    let log = Log()
    let source = onNewThread { RunLoop.current.signalled { log.write("S0") } }
    #expect(source.isValid && source.isSignalled)
    let result = onNewThread {
      RunLoop.current.add(source, forMode: .default)
      return RunLoop.current.run(mode: .default, for: .zero)
    }
    #expect(log.text == "S0")
    #expect(result == .timedOut)
  }

  @Test("at the thread's end timers and observers are not called but stay valid for another loop", .rule(.r116))
  func freeTimersAndObservers() {
    let log = Log()
    let (timer, observer) = onVirtualTime { time, loop in
      let timer = Timer(at: 10, every: .milliseconds(10)) { _ in log.write("T") }
      loop.add(timer, forMode: .common)
      loop.add(timer, forMode: "A")
      let observer = loop.observe(log, mode: .common)
      loop.add(observer, forMode: "A")
      time.advance(by: .milliseconds(15))
      return (timer, observer)
    }
    #expect(log.text == "")
    #expect(timer.isValid && observer.isValid)
    #expect(timer.deadline.milliseconds == 10)
    onVirtualTime { time, loop in
      log.write("\(loop.add(timer, forMode: .default) as Bool) \(loop.add(observer, forMode: .default))")
      loop.run(mode: .default, for: .milliseconds(15))
    }
    #expect(log.text == "true true E BT BS BW AW T BT BS BW AW X")
  }

  @Test("at the thread's end a port keeps its messages for another loop", .rule(.r116))
  func freePort() {
    let log = Log()
    let port = onNewThread {
      let port = Port { _, message in log.write("P\(message.id)") }
      RunLoop.current.add(port, forMode: .common)
      try? port.send(.init(id: 1))
      return port
    }
    try? port.send(.init(id: 2))
    onNewThread {
      RunLoop.current.add(port, forMode: .default)
      for _ in 0..<2 { RunLoop.current.run(mode: .default, for: 10, returnAfterSourceHandled: true) }
    }
    #expect(log.text == "P1 P2")
    #expect(port.isValid)
  }

  @Test("a loop keeps none of its items after its end", .rule(.r115, .r117, .m35))
  func releasesItems() {
    let items = onNewThread {
      let loop = RunLoop.current
      let source = loop.keepAlive(.common)
      let timer = loop.every(.seconds(10), tolerance: .seconds(1), mode: .common) { _ in }
      loop.add(timer, forMode: "A")
      let observer = loop.observe(Log(), mode: .common)
      let port = Port { _, _ in }
      loop.add(port, forMode: .common)
      loop.run(mode: .default, for: .zero)
      return (WeakBox(source), WeakBox(timer), WeakBox(observer), WeakBox(port), loop)
    }
    #expect(items.0.object == nil)
    #expect(items.1.object == nil)
    #expect(items.2.object == nil)
    #expect(items.3.object == nil)
  }

  @Test(
    "a loop that ends with signalled sources, waiting messages and due timers is released, and so are they",
    .rule(.r76, .r115))
  func releasesReadyItems() {
    let ended = onNewThread {
      let loop = RunLoop.current
      let source = loop.signalled {}
      let port = Port { _, _ in }
      try? port.send(.init())
      loop.add(port, forMode: .common)
      let timer = Timer(timeInterval: 0, repeats: true) { _ in }
      loop.add(timer, forMode: .common)
      return (WeakBox(loop), WeakBox(source), WeakBox(port), WeakBox(timer))
    }
    #expect(ended.0.object == nil, "the loop")
    #expect(ended.1.object == nil, "the source")
    #expect(ended.2.object == nil, "the port")
    #expect(ended.3.object == nil, "the timer")
  }

  @Test("a source or port that leaves while it is signalled is not kept by the loop", .rule(.r73, .r76))
  func releasesRemoved() {
    let kept = onVirtualTime { _, loop in
      let source = { WeakBox(loop.signalled {}) }()
      let port = {
        let port = Port { _, _ in }
        try? port.send(.init())
        loop.add(port, forMode: .default)
        return WeakBox(port)
      }()
      if let source = source.object { loop.remove(source, forMode: .default) }
      if let port = port.object { loop.remove(port, forMode: .default) }
      return [source.object != nil, port.object != nil]
    }
    #expect(kept == [false, false])
  }

  @Test("blocks that have not run are dropped, released and counted, each once", .rule(.r60, .r115, .m14))
  func drops() {
    let log = Log()
    let loop = onNewThread {
      let loop = RunLoop.current
      let modes: [[RunLoop.Mode]] = [[.default], [.common], ["A"], ["A", "B", .common], [.default, .tracking]]
      for modes in modes {
        let token = Token(log)
        loop.perform(inModes: modes) {
          token.touch()
          log.write("ran")
        }
      }
      loop.run(mode: .tracking, for: .zero)
      log.write("end")
      return loop
    }
    // The last block was also for the tracking mode, which has run.
    #expect(log.text == "ran released end released released released released")
    #expect(loop.statistics.droppedBlockCount == 4)
  }

  @Test(
    "a block posted by a cancel call-out is dropped and counted, and an item that it adds is rejected",
    .rule(.r115, .m14, .m21, .m35))
  func posted() {
    let log = Log()
    let loop = onNewThread {
      let source = RunLoop.Source(
        cancel: { loop, _ in
          log.write("\(loop.perform { log.write("ran") } as Bool) \(loop.add(RunLoop.Source {}, forMode: .default))")
        }, perform: {})
      RunLoop.current.add(source, forMode: .default)
      return RunLoop.current
    }
    #expect(log.text == "true false")
    #expect(loop.statistics.droppedBlockCount == 1)
    #expect(loop.statistics.rejectionCount == 1)
  }

  @Test(
    "a loop retained beyond its thread rejects and counts all work, and is otherwise harmless",
    .rule(.r117, .m21, .m35))
  func survives() {
    let log = Log()
    let loop = onNewThread {
      RunLoop.current.keepAlive("A")
      return RunLoop.current
    }
    let (source, timer) = (RunLoop.Source {}, Timer(timeInterval: 1, repeats: true) { _ in })
    let (observer, port) = (RunLoop.Observer(activities: .all) { _, _ in }, Port { _, _ in })
    #expect(!loop.add(source, forMode: .default))
    #expect(!loop.add(timer, forMode: .common))
    #expect(!loop.add(observer, forMode: "A"))
    #expect(!loop.add(port, forMode: .default))
    let first: Bool = { [token = Token(log)] in loop.perform { token.touch() } }()
    let second: Bool = { [token = Token(log)] in loop.perform(inModes: ["B", .common]) { token.touch() } }()
    #expect(!first && !second)
    #expect(log.text == "released released")
    #expect(loop.statistics.rejectionCount == 6)
    #expect(throws: RunLoopError.loopHasEnded) { try loop.addCommonMode("C") }
    loop.stop()
    loop.stop(mode: "D")
    loop.wakeUp()
    loop.remove(source, forMode: .default)
    loop.remove(timer, forMode: .common)
    #expect(!loop.contains(source, forMode: .default))
    #expect(loop.nextDeadline(forMode: .default) == nil)
    #expect(loop.modes == [.default, "A"])
    #expect(loop.currentMode == nil && !loop.isWaiting)
    #expect(!loop.debugDescription.isEmpty)
    // The rejected item is free for another loop.
    let isTaken: Bool = onNewThread { RunLoop.current.add(timer, forMode: .default) }
    #expect(isTaken)
  }

  @Test("a thread's end also ends a loop whose items others keep in their loops", .rule(.r115))
  func sharedItems() {
    let isLeft = onNewThread {
      let loop = RunLoop.current
      let source = RunLoop.Source {}
      loop.add(source, forMode: .default)
      let ended = onNewThread {
        RunLoop.current.add(source, forMode: .default)
        return WeakBox(RunLoop.current)
      }
      return ended.object == nil && loop.contains(source, forMode: .default)
    }
    #expect(isLeft)
  }

  @Test("blocks that others post during the end each ran, were dropped or were rejected", .rule(.m14, .m21))
  func race() {
    for _ in 0..<20 {
      let threads = Box<[StartedThread<Int>]>([])
      let ran = Counter()
      let loop = onNewThread {
        let loop = RunLoop.current
        loop.keepAlive()
        threads.value = (0..<3).map { _ in
          startThread { (0..<500).count { _ in loop.perform { if ran.add() == 50 { loop.stop() } } } }
        }
        loop.runUntilStopped()
        return loop
      }
      let taken = threads.value.map { $0.result() }.reduce(0, +)
      #expect(taken == ran.value + loop.statistics.droppedBlockCount)
      #expect(1500 - taken == loop.statistics.rejectionCount)
    }
  }

  @Test("items may be invalidated by others while it ends", .rule(.r99e, .r120))
  func invalidationRace() {
    for _ in 0..<50 {
      let cancels = Counter()
      let releases = Counter()
      let threads = Box<[StartedThread<Void>]>([])
      onNewThread {
        let loop = RunLoop.current
        let sources = (0..<4).map { _ in
          let counted = Token { releases.add() }
          return RunLoop.Source(cancel: { _, _ in cancels.add() }, perform: { counted.touch() })
        }
        let timers = (0..<4).map { _ in Timer(timeInterval: 3600, repeats: true) { _ in } }
        for source in sources { loop.add(source, forMode: .default) }
        for timer in timers { loop.add(timer, forMode: .common) }
        threads.value = [
          startThread { for source in sources { source.invalidate() } },
          startThread { for timer in timers { timer.invalidate() } },
        ]
      }
      for thread in threads.value { thread.result() }
      #expect(cancels.value == 4)
      #expect(releases.value == 4)
    }
  }
}
