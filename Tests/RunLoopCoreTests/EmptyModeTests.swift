// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("An empty mode", .timeLimit(.minutes(20)))
struct EmptyModeTests {
  @Test("a run of an unknown mode is finished and makes nothing", .rule(.r24))
  func unknown() {
    let log = record(observing: nil) { _, loop, log in
      loop.run(log, mode: "unknown")
      log.write("\(loop.modes.count)")
    }
    #expect(log == "finished 1")
  }

  @Test("observers do not keep a mode alive and are not called", .rule(.r24, .r25))
  func observersOnly() {
    let log = record { _, loop, log in loop.run(log) }
    #expect(log == "finished")
  }

  enum Content: String, CaseIterable {
    case source, port, timer, block, commonBlock
  }

  @Test("every item that can still be called keeps a mode alive", .rule(.r25, .r26), arguments: Content.allCases)
  func alive(content: Content) {
    let log = record { _, loop, log in
      switch content {
      case .source: loop.keepAlive()
      case .port: loop.port(messages: 0) {}
      case .timer: loop.after(.seconds(9)) { _ in }
      case .block: loop.perform {}
      case .commonBlock: loop.perform(inModes: [.common]) {}
      }
      loop.run(log, for: .zero)
    }
    #expect(log == "E BT BS X timedOut")
  }

  @Test("a block for another mode does not keep this one alive", .rule(.r25))
  func otherBlock() {
    let log = record { _, loop, log in
      loop.perform(inModes: ["other"]) {}
      loop.run(log)
    }
    #expect(log == "finished")
  }

  @Test("a timer that fires for the last time still counts in a run nested in it", .rule(.r26))
  func firing() {
    let log = record(observing: nil) { time, loop, log in
      loop.after(.milliseconds(5)) { _ in loop.nest(log, for: .milliseconds(10)) }
      loop.run(log)
      log.write("\(time.milliseconds)")
    }
    #expect(log == "[ timedOut ] finished 15")
  }

  @Test("a mode with nothing but blocks that post blocks runs them, and waits once there is none", .rule(.r28a, .m1))
  func blocksOnly() {
    let log = record { _, loop, log in
      loop.perform {
        log.write("B1")
        loop.perform { log.write("B2") }
      }
      loop.run(log)
    }
    #expect(log == "E BT BS B1 BW AW B2 X finished")
  }

  @Test("a mode that an entry observer empties makes one pass, with its wait", .rule(.r28b, .m1))
  func emptiedAtEntry() {
    let log = record { _, loop, log in
      let source = loop.keepAlive()
      loop.once(.entry) { loop.remove(source, forMode: .default) }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW X timedOut")
  }

  @Test("a mode that a source empties is finished after that pass", .rule(.r28b, .m1))
  func emptiedBySource() {
    let log = record { _, loop, log in
      let source = Box<RunLoop.Source?>(nil)
      source.value = loop.signalled {
        log.write("S0")
        source.value?.invalidate()
      }
      loop.run(log)
      source.value = nil
    }
    #expect(log == "E BT BS S0 X finished")
  }

  @Test("a loop whose mode is emptied just before the wait still waits", .rule(.r28, .r28b))
  func emptiedBeforeWaiting() {
    let log = record { time, loop, log in
      let source = loop.keepAlive()
      loop.once(.beforeWaiting) { source.invalidate() }
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS BW AW X timedOut 1")
  }

  enum Removal: String, CaseIterable {
    case removed, removedFromCommon, invalidated
  }

  @Test(
    "removing the last source of a sleeping loop does not wake it", .rule(.r28c, .r50), arguments: Removal.allCases)
  func lastSource(removal: Removal) {
    let log = record { time, loop, log in
      let source = RunLoop.Source {}
      loop.add(source, forMode: removal == .removedFromCommon ? .common : .default)
      time.at(.milliseconds(5)) {
        switch removal {
        case .removed: loop.remove(source, forMode: .default)
        case .removedFromCommon: loop.remove(source, forMode: .common)
        case .invalidated: source.invalidate()
        }
      }
      time.at(.milliseconds(9)) { loop.wakeUp() }
      loop.run(log)
      log.write("\(time.milliseconds)")
    }
    #expect(log == "E BT BS BW AW X finished 9")
  }

  @Test("removing the last timer or port of a sleeping loop does not wake it", .rule(.r28c))
  func lastTimerAndPort() {
    let log = record { time, loop, log in
      let timer = loop.after(.seconds(9)) { _ in }
      let port = loop.port(messages: 0) {}
      time.at(.milliseconds(5)) { timer.invalidate() }
      time.at(.milliseconds(7)) { port.invalidate() }
      loop.run(log, for: .milliseconds(20))
      log.write("\(time.milliseconds)")
    }
    #expect(log == "E BT BS BW AW X timedOut 20")
  }

  @Test("a run whose mode was emptied while it slept can be stopped", .rule(.r28c, .r35))
  func stopOfEmptied() {
    let log = record { time, loop, log in
      let source = loop.keepAlive()
      time.at(.milliseconds(5)) { source.invalidate() }
      time.at(.milliseconds(9)) { loop.stop() }
      log.write("\(loop.runUntilStopped())")
      log.write("\(time.milliseconds)")
    }
    #expect(log == "E BT BS BW AW X stopped 9")
  }

  @Test("the last item that leaves on the loop's own thread ends the run with that pass", .rule(.r28))
  func lastOnOwnThread() {
    let log = record { time, loop, log in
      let source = loop.keepAlive()
      loop.after(.milliseconds(5)) { _ in
        log.write("T")
        source.invalidate()
      }
      loop.run(log)
      log.write("\(time.milliseconds)")
    }
    #expect(log == "E BT BS BW AW T X finished 5")
  }

  @Test("a source that leaves beside another costs no pass", .rule(.r50, .m20))
  func notTheLast() {
    let log = record { time, loop, log in
      loop.keepAlive()
      let source = loop.keepAlive()
      time.at(.milliseconds(5)) { source.invalidate() }
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW X timedOut")
  }
}
