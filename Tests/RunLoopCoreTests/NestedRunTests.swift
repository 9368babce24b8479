// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Nested runs", .timeLimit(.minutes(20)))
struct NestedRunTests {
  @Test("a stop ends the innermost run only", .rule(.r35))
  func stop() {
    let log = record { time, loop, log in
      loop.keepAlive("inner")
      time.at(.milliseconds(5)) { loop.stop() }
      loop.signalled { loop.nest(log, mode: "inner", for: .seconds(1)) }
      loop.run(log)
    }
    #expect(log == "E BT BS [ stopped ] BT BS BW AW X timedOut")
  }

  @Test("a stop of the outer run passes a later nested run by, and is kept", .rule(.r36))
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

  @Test("a stop at the exit of a nested run reaches no other run", .rule(.r38, .r35))
  func stopAtExit() {
    let log = record { _, loop, log in
      loop.keepAlive("inner")
      loop.once(.exit, mode: "inner") { loop.stop() }
      loop.signalled { loop.nest(log, mode: "inner") }
      loop.run(log)
    }
    #expect(log == "E BT BS [ timedOut ] BT BS BW AW X timedOut")
  }

  @Test("a nested run of the same mode has its own entry and exit", .rule(.r91))
  func sameMode() {
    let log = record(observing: nil) { _, loop, log in
      loop.observe(log, [.entry, .exit])
      loop.signalled { loop.run(mode: .default, for: .zero) }
      loop.run(mode: .default, for: .zero)
    }
    #expect(log == "E E X X")
  }

  @Test("the timeout of a nested run is its own, and the outer run is late for it", .rule(.r108))
  func timeouts() {
    let log = record { time, loop, log in
      loop.keepAlive("inner")
      loop.after(.milliseconds(5)) { _ in loop.nest(log, mode: "inner", for: .milliseconds(50)) }
      loop.run(log, for: .milliseconds(10))
      log.write("\(time.milliseconds)")
    }
    #expect(log == "E BT BS BW AW [ timedOut ] X timedOut 55")
  }

  @Test("the results of nested runs are independent", .rule(.r108))
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

  /// The call-outs in which a run can be nested.
  enum CallOut: String, CaseIterable {
    case entry, beforeTimers, beforeSources, beforeWaiting, afterWaiting, exit
    case source, block, timer, port
  }

  @Test("a run may be nested in any call-out, in another mode", .rule(.r108), arguments: CallOut.allCases)
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

  @Test("runs nest as deep as they like", .rule(.r108))
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

  @Test("a timer is skipped by runs nested in it; another one fires there and not again", .rule(.r109))
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

  @Test("a nested run does not change how the outer run continues", .rule(.r3, .r108))
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

  @Test("a wake-up for a run nested after the wait costs the outer loop no pass", .rule(.r47, .r108, .m20))
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
