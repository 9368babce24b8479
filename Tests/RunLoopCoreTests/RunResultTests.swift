// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The result of a run", .timeLimit(.minutes(20)))
struct RunResultTests {
  /// Events that end a run that returns after a source, and events that do not.
  enum Cause: String, CaseIterable {
    case source, port, timer, block, observer, wakeUp
  }

  @Test("only a source or a port ends a run that returns after a source", .rule(.r8), arguments: Cause.allCases)
  func returnAfterSource(cause: Cause) {
    let result = onVirtualTime { time, loop in
      loop.keepAlive()
      switch cause {
      case .source: loop.signalled {}
      case .port: loop.port(messages: 1) {}
      case .timer: loop.after(.milliseconds(1)) { _ in }
      case .block: loop.perform {}
      case .observer: loop.once(.beforeWaiting) {}
      case .wakeUp: time.at(.milliseconds(1)) { loop.wakeUp() }
      }
      return loop.run(mode: .default, for: .seconds(1), returnAfterSourceHandled: true)
    }
    #expect(result == (cause == .source || cause == .port ? .handledSource : .timedOut))
  }

  @Test("a handled source counts before the timeout, a stop and an empty mode", .rule(.r6))
  func handledSourceFirst() {
    let log = record { time, loop, log in
      let source = Box<RunLoop.Source?>(nil)
      source.value = loop.signalled {
        log.write("S0")
        time.advance(by: .seconds(2))
        loop.stop()
        loop.stop(mode: .default)
        source.value?.invalidate()
      }
      loop.run(log, returnAfterSourceHandled: true)
      source.value = nil
    }
    #expect(log == "E BT BS S0 X handledSource")
  }

  @Test("the timeout counts before a stop and an empty mode", .rule(.r6))
  func timeoutSecond() {
    let log = record { time, loop, log in
      loop.after(.milliseconds(5)) { _ in
        log.write("T")
        time.advance(by: .seconds(2))
        loop.stop()
      }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW T X timedOut")
  }

  @Test("a stop counts before an empty mode", .rule(.r6))
  func stopThird() {
    let log = record { _, loop, log in
      loop.after(.milliseconds(5)) { _ in loop.stop() }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW X stopped")
  }

  @Test("a stop of the mode counts before an empty mode", .rule(.r6, .r42))
  func modeStopFourth() {
    let log = record { _, loop, log in
      loop.after(.milliseconds(5)) { _ in loop.stop(mode: .default) }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW X stopped")
  }

  @Test("a stop of the run counts before a stop of the mode, which stays for the next run", .rule(.r6, .r42))
  func stopBeforeModeStop() {
    let log = record(observing: nil) { _, loop, log in
      loop.keepAlive()
      loop.once(.beforeTimers) {
        loop.stop()
        loop.stop(mode: .default)
      }
      for _ in 0..<3 { loop.run(log) }
    }
    #expect(log == "stopped stopped timedOut")
  }

  @Test("a stop that loses to the timeout is lost", .rule(.r7))
  func lostToTimeout() {
    let log = record { _, loop, log in
      loop.keepAlive()
      loop.after(.seconds(1)) { _ in loop.stop() }
      loop.run(log)
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW X timedOut E BT BS BW AW X timedOut")
  }

  @Test("a stop that loses to a handled source is lost", .rule(.r7))
  func lostToSource() {
    let log = record { _, loop, log in
      loop.signalled { loop.stop() }
      loop.run(log, returnAfterSourceHandled: true)
      loop.run(log)
    }
    #expect(log == "E BT BS X handledSource E BT BS BW AW X timedOut")
  }

  @Test("the pass that fires the last timer finishes the run", .rule(.r29))
  func lastTimer() {
    let log = record { _, loop, log in
      loop.after(.milliseconds(5)) { _ in log.write("T") }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW T X finished")
  }

  @Test("the results have Core Foundation's numbers", .rule(.r6))
  func numbers() {
    let results: [RunLoop.RunResult] = [.finished, .stopped, .timedOut, .handledSource]
    #expect(results.map(\.rawValue) == [1, 2, 3, 4])
  }
}
