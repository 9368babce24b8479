// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The trace hook")
struct TraceTests {
  @Test("a trace hook receives everything that a run does, in order", .rule(.r2, .r3))
  func everything() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.trace(to: log)
      loop.signalled {}
      loop.perform {}
      let port = Port { _, _ in }
      loop.add(port, forMode: .default)
      time.at(.milliseconds(7)) { try? port.send(.init()) }
      loop.after(.milliseconds(5)) { _ in loop.perform {} }
      loop.run(mode: .default, for: .milliseconds(10))
      return log.text
    }
    #expect(
      log == """
        E BT BS block( )block source0( )source0 \
        BT BS BW sleep5 AW timer( )timer block( )block \
        BT BS BW sleep10 AW source1( )source1 \
        BT BS BW sleep10 AW X
        """)
  }

  @Test("a traced activity precedes its observers, and appears without any", .rule(.r3))
  func observers() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      loop.trace(to: log)
      loop.keepAlive()
      let observer = RunLoop.Observer(activities: [.entry, .exit]) { _, activity in log.write("<\(activity.letter)>") }
      loop.add(observer, forMode: .default)
      loop.run(mode: .default, for: .zero)
      return log.text
    }
    #expect(log == "E <E> BT BS X <X>")
  }

  @Test("a trace hook knows the mode, nesting depth and time", .rule(.r108))
  func modeDepthAndTime() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      loop.setTraceHook { event in
        guard case .activity(let activity) = event.kind, activity == .entry || activity == .exit else { return }
        log.write("\(activity.letter)\(event.depth):\(event.mode):\(event.time.milliseconds)")
      }
      loop.keepAlive("inner")
      let timer = Timer(at: 5) { _ in loop.run(mode: "inner", for: .milliseconds(3)) }
      loop.add(timer, forMode: "outer")
      loop.run(mode: "outer", for: .seconds(1))
      return log.text
    }
    #expect(log == "E1:outer:0 E2:inner:5 X2:inner:8 X1:outer:8")
  }

  @Test("without a trace hook nothing is called, and a removed hook hears nothing more and is released")
  func off() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      loop.keepAlive()
      loop.run(mode: .default, for: .zero)
      do {
        let token = Token(log)
        loop.setTraceHook { [token] _ in
          token.touch()
          log.write("heard")
        }
      }
      loop.once(.beforeSources) {
        loop.setTraceHook(nil)
        log.write("off")
      }
      loop.run(mode: .default, for: .milliseconds(1))
      return log.text
    }
    #expect(log == "heard heard heard released off")
  }

  @Test("a trace hook set in a call-out starts there, and a second one replaces it")
  func replaced() {
    let log = onVirtualTime { _, loop in
      let log = Log()
      let other = Log()
      loop.keepAlive()
      loop.perform { loop.trace(to: log) }
      loop.once(.afterWaiting) { loop.trace(to: other) }
      loop.run(mode: .default, for: .milliseconds(1))
      return "\(log.text) | \(other.text)"
    }
    // The call-out that began without the hook also ends without it.
    #expect(log == "BW sleep1 AW | X")
  }

  @Test("work posted by the hook as the loop falls asleep is not missed", .rule(.m3))
  func postAtSleep() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let isFirst = Box(true)
      loop.setTraceHook { event in
        guard case .sleep = event.kind else { return }
        time.stamp(log, "sleep")
        guard isFirst.value else { return }
        isFirst.value = false
        loop.perform { time.stamp(log, "B") }
      }
      loop.keepAlive()
      loop.run(mode: .default, for: .milliseconds(9))
      return log.text
    }
    #expect(log == "sleep0 B0 sleep0")
  }

  @Test("a trace hook set by another thread sees call-outs from the next pass on, and none after its removal")
  func otherThreadsCallOuts() {
    let heard = onNewThread {
      let loop = RunLoop.current
      let log = Log()
      let first = Hold()
      let second = Hold()
      loop.perform { first.occupy() }
      let other = startThread {
        first.begun.wait()
        loop.setTraceHook { event in if event.kind == .callOut(.block) { log.write("block") } }
        first.released.open()
        // This ends the current pass, and the following wait belongs to a later one.
        let passed = Latch()
        loop.perform { passed.open() }
        passed.wait()
        waitUntil { loop.isWaiting }
        log.clear()
        loop.perform { second.occupy() }
        second.begun.wait()
        loop.setTraceHook(nil)
        loop.perform { loop.stop() }
        second.released.open()
      }
      loop.keepAlive()
      loop.runUntilStopped()
      other.result()
      return log.text
    }
    #expect(heard == "block")
  }

  @Test("another thread may set and remove a trace hook while the loop runs", .timeLimit(.minutes(20)))
  func otherThread() {
    let heard = onNewThread {
      let loop = RunLoop.current
      let log = Log()
      loop.keepAlive()
      let other = startThread {
        for _ in 0..<200 {
          loop.setTraceHook { event in if event.kind == .activity(.beforeTimers) { log.write("BT") } }
          loop.wakeUp()
          loop.setTraceHook(nil)
        }
        loop.perform { loop.stop() }
      }
      loop.runUntilStopped()
      other.result()
      return log.count(of: "BT")
    }
    #expect(heard <= 401)
  }
}

extension RunLoop {
  fileprivate func trace(to log: Log) {
    setTraceHook { event in
      switch event.kind {
      case .activity(let activity): log.write(activity.letter)
      case .sleep(let deadline): log.write("sleep\(deadline.milliseconds)")
      case .callOut(let kind): log.write("\(kind.rawValue)(")
      case .callOutEnded(let kind): log.write(")\(kind.rawValue)")
      }
    }
  }
}
