// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

/// In these tests, the test itself is the host: it polls the descriptor, advances virtual time, and calls the guest.
@Suite("A guest of another loop", .timeLimit(.minutes(20)))
struct GuestTests {
  @Test("a guest is a run that is cut open where it would sleep", .rule(.r2, .r3, .r83, .m28))
  func stages() {
    let log = host { time, loop, guest, log in
      loop.after(.milliseconds(20)) { _ in log.write("T") }
      guest.turn(log)
      guest.turn(log, time)
      loop.perform { log.write("B") }
      guest.turn(log)
    }
    #expect(log == "| E BT BS BW timedOut | AW BT BS T BW finished | AW BT BS B BW finished X")
  }

  @Test("the mode is current between turns, when the loop waits, but not before the first turn", .rule(.m28))
  func state() {
    let log = host { _, loop, guest, log in
      loop.perform { log.write("\(loop.isWaiting)") }
      log.write("\(loop.isWaiting)")
      guest.turn(log)
      log.write("\(loop.isWaiting) \(loop.currentMode == .default)")
      guest.invalidate()
      log.write("\(loop.isWaiting) \(loop.currentMode == nil)")
    }
    #expect(log == "false | E BT BS false BW finished true true X false true")
  }

  @Test("a turn performs one source, and leaves turns for the others and for the host", .rule(.r8, .r9, .m28))
  func oneSource() {
    let log = host { _, loop, guest, log in
      loop.signalled { log.write("a") }
      loop.signalled { log.write("b") }
      guest.turn(log)
      log.write(guest.isReadable ? "readable" : "quiet")
      guest.turn(log)
      log.write(guest.isReadable ? "readable" : "quiet")
    }
    #expect(log == "| E BT BS a handledSource readable | BT BS b BW handledSource quiet X")
  }

  @Test("a message counts as a source, a timer and a block do not", .rule(.r8, .m28))
  func results() {
    let log = host { time, loop, guest, log in
      loop.port(messages: 2) { log.write("S1") }
      guest.turn(log)
      guest.turn(log)
      loop.after(.milliseconds(1)) { _ in log.write("T") }
      guest.turn(log)
      guest.turn(log, time)
    }
    #expect(
      log == "| E BT BS S1 BW handledSource | AW BT BS S1 BW handledSource | timedOut | AW BT BS T BW timedOut X")
  }

  @Test("a time slice ends with the call-out that exceeds it, and the remaining work keeps its order")
  func budget() {
    let log = host { time, loop, guest, log in
      for number in 1...6 {
        loop.perform {
          log.write("\(number)")
          time.advance(by: .milliseconds(3))
          if number == 2 { loop.perform { log.write("posted") } }
        }
      }
      loop.schedule(in: .milliseconds(100)) { _ in log.write("T") }
      for _ in 0..<4 {
        let report = guest.service(for: .milliseconds(8))
        log.write("| \(report.isDone) \(report.waitingCount)")
      }
      log.write(guest.isReadable ? "readable" : "quiet")
    }
    #expect(
      log == "E BT BS 1 2 3 BW | false 4 AW BT BS 4 5 6 BW | false 1 AW BT BS posted BW | true 0 | true 0 quiet X")
  }

  @Test("a time slice ends between two due timers and between two hand-offs, which the next ones serve")
  func budgetOfTimersAndHandOffs() {
    let log = host { time, loop, guest, log in
      for number in 1...4 {
        loop.schedule(in: .milliseconds(1)) { _ in
          log.write("T\(number)")
          time.advance(by: .milliseconds(6))
        }
        _ = loop.handOff(inModes: [.default]) {
          log.write("H\(number)")
          time.advance(by: .milliseconds(6))
        }
      }
      time.advance(by: .milliseconds(1))
      for _ in 0..<6 {
        let report = guest.service(for: .milliseconds(10))
        log.write("| \(report.isDone) \(report.waitingCount)")
      }
    }
    #expect(
      log == "E BT BS H1 H2 T1 BW | false 2 AW BT BS H3 H4 T2 BW | false 0 AW BT BS T3 T4 BW | true 0 | true 0 "
        + "| true 0 | true 0 X")
  }

  @Test("work left over by a time slice comes after earlier posts of the run around it")
  func budgetInBlock() {
    let log = host { time, loop, guest, log in
      loop.perform(inModes: ["modal"]) { log.write("old") }
      loop.perform {
        do {
          let modal = try RunLoop.Guest(mode: "modal")
          for number in 1...3 {
            loop.perform(inModes: ["modal"]) {
              log.write("\(number)")
              time.advance(by: .milliseconds(9))
            }
          }
          for _ in 0..<3 { modal.service(for: .milliseconds(8)) }
          modal.invalidate()
        } catch {
          log.write("\(error)")
        }
      }
      guest.service()
      loop.run(mode: "modal", for: .zero)
    }
    #expect(log == "E BT BS 1 2 3 BW old X")
  }

  @Test("a run nested in a time slice is not cut short by it, and neither is the next service")
  func budgetAndNestedRun() {
    let log = host { time, loop, guest, log in
      loop.perform {
        time.advance(by: .milliseconds(9))
        loop.perform { log.write("inner") }
        loop.perform { log.write("too") }
        loop.run(mode: .default, for: .zero)
      }
      loop.perform { log.write("left") }
      guest.service(for: .milliseconds(8))
      log.write("|")
      guest.service()
    }
    #expect(log == "E BT BS E BT BS inner too X BW | AW BT BS left BW X")
  }

  @Test("the next turn reports a stop, and the guest continues", .rule(.r34, .r41, .r43, .m16, .m24, .m28))
  func stop() {
    let log = host { _, loop, guest, log in
      loop.keepAlive()
      loop.stop()
      guest.turn(log)
      loop.stop()
      guest.turn(log)
      loop.stop(mode: .default)
      loop.stop(mode: "other")
      guest.turn(log)
      loop.perform { loop.stop() }
      guest.turn(log)
      log.write(guest.isReadable ? "readable" : "quiet")
    }
    #expect(
      log == "| E BT BS BW stopped | AW BT BS BW stopped | AW BT BS BW stopped | AW BT BS BW stopped quiet X")
  }

  @Test("a stop by an observer before the wait is reported by the turn that follows at once", .rule(.r39, .m28))
  func stopBeforeWait() {
    let log = host { _, loop, guest, log in
      loop.keepAlive()
      loop.once(.beforeWaiting) { loop.stop() }
      guest.turn(log)
      log.write(guest.isReadable ? "readable" : "quiet")
      guest.turn(log)
    }
    #expect(log == "| E BT BS BW timedOut readable | AW BT BS BW stopped X")
  }

  @Test("on the loop of a stopping thread a turn makes no pass, and the host is notified once", .rule(.m24, .m28))
  func stopping() {
    let log = host { _, loop, guest, log in
      loop.keepAlive()
      guest.turn(log)
      loop.stopForGood()
      log.write(guest.isReadable ? "readable" : "quiet")
      guest.turn(log)
      loop.wakeUp()
      loop.perform {}
      log.write(guest.isReadable ? "readable" : "quiet")
      guest.turn(log)
    }
    #expect(log == "| E BT BS BW timedOut readable | stopped quiet | stopped X")
  }

  @Test("an empty mode is finished, and is served again when something is added to it", .rule(.r25, .m28))
  func empty() {
    let log = host { time, loop, guest, log in
      guest.turn(log)
      log.write("\(guest.timeout == nil)")
      let timer = loop.after(.milliseconds(5)) { _ in log.write("T") }
      guest.turn(log)
      timer.invalidate()
      guest.turn(log)
      loop.after(.milliseconds(5)) { _ in log.write("T") }
      guest.turn(log)
      guest.turn(log, time)
    }
    #expect(
      log == "| E BT BS BW finished true | timedOut | finished | timedOut | AW BT BS T BW finished X")
  }

  @Test("a wake-up is one pass, whether before the wait, after it, or by an observer", .rule(.r48, .m2, .m20, .m28))
  func wakeUps() {
    let log = host { _, loop, guest, log in
      loop.keepAlive()
      guest.turn(log)
      for _ in 0..<3 { loop.wakeUp() }
      guest.turn(log)
      log.write(guest.isReadable ? "readable" : "quiet")
      // After the pass has checked for ready items.
      loop.port(messages: 1) { loop.wakeUp() }
      guest.turn(log)
      log.write(guest.isReadable ? "readable" : "quiet")
      loop.once(.beforeWaiting) { loop.wakeUp() }
      guest.turn(log)
      log.write(guest.isReadable ? "readable" : "quiet")
      guest.turn(log)
      log.write(guest.isReadable ? "readable" : "quiet")
    }
    #expect(
      log == "| E BT BS BW timedOut | AW BT BS BW timedOut quiet | AW BT BS handledSource readable "
        + "| BT BS BW timedOut readable | AW BT BS BW timedOut quiet X")
  }

  @Test("work posted by an observer before the wait is served at once", .rule(.m2, .m28))
  func postedBeforeWait() {
    let log = host { _, loop, guest, log in
      loop.once(.beforeWaiting) { loop.perform { log.write("B") } }
      guest.turn(log)
      log.write(guest.isReadable ? "readable" : "quiet")
      guest.turn(log)
    }
    #expect(log == "| E BT BS BW finished readable | AW BT BS B BW finished X")
  }

  @Test("a moved date, work for another mode and a call for nothing make no pass", .rule(.m25, .m28))
  func noReason() {
    let log = host { time, loop, guest, log in
      let timer = loop.after(.milliseconds(50)) { timer in time.stamp(log, "T") }
      guest.turn(log)
      guest.turn(log)
      timer.deadline = time.instant(30)
      log.write(guest.isReadable ? "readable" : "quiet")
      guest.turn(log)
      log.write("\(guest.timeoutMilliseconds)")
      loop.perform(inModes: ["other"]) {}
      guest.turn(log)
      timer.deadline = time.instant(40)
      log.write(guest.isReadable ? "readable" : "quiet")
      // The host waited until the date that it was given.
      time.advance(by: .milliseconds(30))
      guest.turn(log)
      log.write("\(guest.timeoutMilliseconds)")
      guest.turn(log, time)
    }
    #expect(
      log == "| E BT BS BW timedOut | timedOut readable | timedOut 30 | timedOut quiet | timedOut 10 "
        + "| AW BT BS T40 BW finished X")
  }

  @Test("the remaining time is rounded up to milliseconds", .rule(.m28))
  func timeouts() {
    let log = host { time, loop, guest, log in
      log.write("\(guest.timeoutMilliseconds)")
      guest.service()
      log.write("\(guest.timeoutMilliseconds)")
      let timer = loop.after(.nanoseconds(1)) { _ in }
      guest.service()
      log.write("\(guest.timeoutMilliseconds) \(guest.timeout == .nanoseconds(1))")
      timer.deadline = time.instant(7)
      guest.service()
      log.write("\(guest.timeoutMilliseconds) \(guest.nextDeadline == time.instant(7))")
      timer.deadline = loop.now.advanced(by: .seconds(1 << 30))
      guest.service()
      log.write("\(guest.timeoutMilliseconds == .max)")
      time.advance(by: .seconds(1 << 30))
      log.write("\(guest.timeoutMilliseconds)")
      guest.invalidate()
      log.write("\(guest.timeoutMilliseconds) \(guest.nextDeadline == nil)")
    }
    #expect(log == "0 E BT BS BW -1 1 true 7 true true 0 X -1 true")
  }

  @Test("the common pseudo-mode is no mode of a guest, and a dead loop has none", .rule(.r84, .m28))
  func rejected() {
    #expect(failure { () throws(RunLoopError) in _ = try RunLoop.Guest(mode: .common) } == .notAMode(.common))
    let isRefused = onNewThread {
      RunLoop.current.end()
      return failure { () throws(RunLoopError) in _ = try RunLoop.Guest() } == .loopHasEnded
    }
    #expect(isRefused)
  }
}

/// Creates a guest on virtual time with an observer of all stages of the default mode, and returns the log.
func host(
  signalsDeadlines: Bool = false,
  _ body: @escaping @Sendable (SteppedTime, RunLoop, RunLoop.Guest, Log) -> Void
) -> String {
  record { time, loop, log in
    do {
      let guest = try RunLoop.Guest(signalsDeadlines: signalsDeadlines)
      body(time, loop, guest, log)
      guest.invalidate()
    } catch {
      log.write("\(error)")
    }
  }
}

extension RunLoop.Guest {
  /// Services the guest after its requested time, and logs the result.
  func turn(_ log: Log, _ time: SteppedTime? = nil) {
    if let time, let timeout { time.advance(by: timeout) }
    log.write("|")
    log.write("\(service())")
  }

  /// Whether a host that watches the descriptor would be notified now.
  var isReadable: Bool { isReadableNow(descriptor) }
}
