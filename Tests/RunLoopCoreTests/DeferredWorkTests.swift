// SPDX-License-Identifier: Apache-2.0

import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Deferred work", .timeLimit(.minutes(20)))
struct DeferredWorkTests {
  /// Waits for a mode until it has been queried a number of times.
  private final class Work: DeferredWork {
    let mode: RunLoop.Mode
    let log: Log
    var turns: Int

    init(_ mode: RunLoop.Mode, turns: Int, _ log: Log) {
      (self.mode, self.turns, self.log) = (mode, turns, log)
    }

    func isWaiting(for mode: RunLoop.Mode, isCommon: Bool) -> Bool {
      guard mode == self.mode || (isCommon && self.mode == .common) else { return false }
      turns -= 1
      return turns >= 0
    }

    func end() { log.write("ended") }
  }

  @Test(
    "while work waits for its mode, the loop makes passes and does not sleep",
    arguments: [
      RunLoop.Mode.default, .common,
    ])
  func passes(mode: RunLoop.Mode) {
    let log = record { time, loop, log in
      loop.keepAlive()
      loop.deferredWork = Work(mode, turns: 2, log)
      loop.run(log)
      log.write("\(time.sleepCount)")
    }
    #expect(log == "E BT BS BW AW BT BS BW AW BT BS BW AW X timedOut 1")
  }

  @Test("work that waits for another mode does not keep the loop from sleeping")
  func otherMode() {
    let log = record { _, loop, log in
      loop.keepAlive()
      loop.deferredWork = Work("other", turns: 9, log)
      loop.run(log)
    }
    #expect(log == "E BT BS BW AW X timedOut")
  }

  @Test("deferred work ends once, with the loop")
  func end() {
    let log = Log()
    onVirtualTime { _, loop in loop.deferredWork = Work(.default, turns: 0, log) }
    #expect(log.text == "ended")
  }

  /// Reports before a run's wait whether the loop is idle.
  private func isIdle(
    mode: RunLoop.Mode = .default, for timeout: Duration = .seconds(1),
    _ prepare: @escaping @Sendable (SteppedTime, RunLoop) -> Void
  ) -> String {
    record(observing: nil) { time, loop, log in
      loop.keepAlive(mode)
      loop.add(
        RunLoop.Observer(activities: .beforeWaiting, repeats: false) { _, _ in
          prepare(time, loop)
          log.write("\(loop.isIdle)")
        }, forMode: mode)
      loop.run(mode: mode, for: timeout)
    }
  }

  @Test("a loop that would sleep is idle, whatever other modes have to do")
  func idle() {
    #expect(isIdle { _, _ in } == "true")
    let log = isIdle { _, loop in
      loop.perform(inModes: ["other"]) {}
      loop.signalled(mode: "other") {}
      loop.after(.milliseconds(1)) { _ in }
    }
    #expect(log == "true")
  }

  @Test("a loop that would not sleep is not idle")
  func notIdle() {
    #expect(isIdle { _, loop in loop.perform {} } == "false")
    #expect(isIdle { _, loop in loop.signalled {} } == "false")
    #expect(isIdle { _, loop in loop.after(.zero) { _ in } } == "false")
    #expect(isIdle { _, loop in loop.port(messages: 1) {} } == "false")
    #expect(isIdle { _, loop in loop.wakeUp() } == "false")
    #expect(isIdle { _, loop in loop.stop() } == "false")
    #expect(isIdle { _, loop in loop.stop(mode: .default) } == "false")
    #expect(isIdle { time, _ in time.advance(by: .seconds(2)) } == "false")
  }

  @Test("outside every run the loop is never idle")
  func noRun() {
    #expect(onVirtualTime { _, loop in !loop.isIdle && !loop.isInCommonMode })
  }

  @Test("a re-entrant observer is called by runs nested in its call-out too, and ends after the outermost")
  func reentrantObserver() {
    let log = record(observing: nil) { _, loop, log in
      loop.keepAlive()
      let observer = RunLoop.Observer(activities: [.entry, .exit], repeats: true, order: 0, isReentrant: true) {
        observer, activity in
        log.write(activity.letter)
        if activity == .entry, log.count(of: "E") < 3 { loop.nest(log) }
        if activity == .exit, log.count(of: "X") == 1 { observer.invalidate() }
      }
      loop.add(observer, forMode: .default)
      loop.run(log, for: .zero)
      log.write("\(observer.isValid)")
    }
    #expect(log == "E [ E [ E X timedOut ] timedOut ] timedOut false")
  }
}
