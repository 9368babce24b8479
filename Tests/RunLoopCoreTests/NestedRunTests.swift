// SPDX-License-Identifier: Apache-2.0

import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Nested runs", .timeLimit(.minutes(20)))
struct NestedRunTests {
  // R35
  @Test("a stop ends the innermost run only")
  func stop() {
    let log = record { time, loop, log in
      loop.keepAlive("inner")
      time.at(.milliseconds(5)) { loop.stop() }
      loop.signalled { loop.nest(log, mode: "inner", for: .seconds(1)) }
      loop.run(log)
    }
    #expect(log == "E BT BS [ stopped ] BT BS BW AW X timedOut")
  }

  // R36
  @Test("a stop of the outer run passes a later nested run by, and is kept")
  func stopOuter() {
    let log = record { _, loop, log in
      loop.keepAlive("inner")
      loop.signalled {
        loop.stop()
        loop.nest(log, mode: "inner", for: .seconds(1))
      }
      loop.run(log, for: .seconds(9))
    }
    #expect(log == "E BT BS [ timedOut ] X stopped")
  }

  // R38, R35
  @Test("a stop at the exit of a nested run reaches no other run")
  func stopAtExit() {
    let log = record { _, loop, log in
      loop.keepAlive("inner")
      loop.once(.exit, mode: "inner") { loop.stop() }
      loop.signalled { loop.nest(log, mode: "inner") }
      loop.run(log)
    }
    #expect(log == "E BT BS [ timedOut ] BT BS BW AW X timedOut")
  }

  // R91
  @Test("a nested run of the same mode has its own entry and exit")
  func sameMode() {
    let log = record(observing: nil) { _, loop, log in
      loop.observe(log, [.entry, .exit])
      loop.signalled { loop.run(mode: .default, for: .zero) }
      loop.run(mode: .default, for: .zero)
    }
    #expect(log == "E E X X")
  }

  // R108
  @Test("the timeout of a nested run is its own, and the outer run is late for it")
  func timeouts() {
    let log = record { time, loop, log in
      loop.keepAlive("inner")
      loop.after(.milliseconds(5)) { _ in loop.nest(log, mode: "inner", for: .milliseconds(50)) }
      loop.run(log, for: .milliseconds(10))
      log.write("\(time.milliseconds)")
    }
    #expect(log == "E BT BS BW AW [ timedOut ] X timedOut 55")
  }

  // R108
  @Test("the results of nested runs are independent")
  func results() {
    let log = record { _, loop, log in
      loop.signalled(mode: "inner") { log.write("S0") }
      loop.signalled {
        log.write("[")
        loop.run(log, mode: "inner", returnAfterSourceHandled: true)
        loop.run(log, mode: "empty")
        loop.run(log, mode: "inner", for: .zero)
        log.write("]")
      }
      loop.run(log)
    }
    #expect(log == "E BT BS [ S0 handledSource finished timedOut ] BT BS BW AW X timedOut")
  }

  /// From where a run is nested.
  enum CallOut: String, CaseIterable {
    case entry, beforeTimers, beforeSources, beforeWaiting, afterWaiting, exit
    case source, block, timer, port
  }

  // R108
  @Test("a run may be nested in any call-out, in another mode", arguments: CallOut.allCases)
  func anyCallOut(callOut: CallOut) {
    let log = record(observing: nil) { _, loop, log in
      let nest = { @Sendable in loop.nest(log, mode: "inner") }
      loop.keepAlive()
      loop.keepAlive("inner")
      switch callOut {
      case .entry: loop.once(.entry, nest)
      case .beforeTimers: loop.once(.beforeTimers, nest)
      case .beforeSources: loop.once(.beforeSources, nest)
      case .beforeWaiting: loop.once(.beforeWaiting, nest)
      case .afterWaiting: loop.once(.afterWaiting, nest)
      case .exit: loop.once(.exit, nest)
      case .source: loop.signalled(nest)
      case .block: loop.perform(nest)
      case .timer: loop.after(.milliseconds(5)) { _ in nest() }
      case .port: loop.port(messages: 1, nest)
      }
      loop.run(log)
      log.write(loop.currentMode?.rawValue ?? "none")
    }
    #expect(log == "[ timedOut ] timedOut none")
  }

  // R108
  @Test("runs nest as deep as they like")
  func deep() {
    let log = record(observing: nil) { _, loop, log in
      let source = Box<RunLoop.Source?>(nil)
      let deepest = Box<Int?>(nil)
      source.value = loop.signalled {
        let depth = (deepest.value ?? 0) + 1
        deepest.value = depth
        guard depth < 100 else { return loop.stop() }
        source.value?.signal()
        loop.run(mode: .default, for: .seconds(1), returnAfterSourceHandled: true)
      }
      loop.run(log, returnAfterSourceHandled: true)
      log.write("\(deepest.value ?? 0) \(loop.currentMode?.rawValue ?? "none")")
      source.value = nil
    }
    #expect(log == "handledSource 100 none")
  }

  // R109
  @Test("a timer is skipped by runs nested in it; another one fires there and not again")
  func timers() {
    let log = record(observing: nil) { time, loop, log in
      loop.every(.milliseconds(5)) { timer in
        log.write("a")
        if log.count(of: "a") == 1 { loop.nest(log, for: .milliseconds(12)) } else { timer.invalidate() }
      }
      loop.after(.milliseconds(5)) { _ in log.write("b") }
      loop.run(log)
      log.write("\(time.milliseconds)")
    }
    #expect(log == "a [ b timedOut ] a finished 20")
  }

  // R3, R108
  @Test("a nested run does not change how the outer one goes on")
  func outerKeepsItsKind() {
    let log = record { _, loop, log in
      loop.keepAlive("inner")
      loop.perform { loop.nest(log, mode: "inner") }
      loop.signalled(order: 0) { log.write("a") }
      loop.signalled(order: 1) { log.write("b") }
      loop.run(log, returnAfterSourceHandled: true)
    }
    #expect(log == "E BT BS [ timedOut ] a X handledSource")
  }

  // R47, R108, M20
  @Test("a wake-up for a run nested after the wait costs the outer loop no pass")
  func wakeUp() {
    let log = record { time, loop, log in
      loop.keepAlive("inner")
      loop.keepAlive()
      time.at(.milliseconds(7)) { loop.wakeUp() }
      loop.after(.milliseconds(5)) { _ in loop.nest(log, mode: "inner", for: .milliseconds(5)) }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW [ timedOut ] BT BS BW AW X timedOut")
  }
}
