// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Timers and durations", .timeLimit(.minutes(20)))
struct TimerDurationTests {
  @Test("a timer that is set back fires when the duration has passed since then", .rule(.r99))
  func move() {
    let log = record(observing: nil) { time, loop, log in
      let timer = loop.after(.milliseconds(10)) { _ in time.stamp(log, "T") }
      for at in [4, 9, 15] { time.at(.milliseconds(at)) { timer.move(after: .milliseconds(10)) } }
      loop.run(log)
    }
    #expect(log == "T25 finished")
  }

  @Test("a repeating timer that is set back has its phase from the new date", .rule(.r99))
  func moveRepeating() {
    let log = record(observing: nil) { time, loop, log in
      let timer = loop.every(.milliseconds(10)) { _ in time.stamp(log, "T") }
      time.at(.milliseconds(15)) { timer.move(after: .milliseconds(8)) }
      loop.run(log, for: .milliseconds(35))
    }
    #expect(log == "T10 T23 T33 timedOut")
  }

  @Test("a parked timer does not fire, keeps its loop alive, and fires when it is moved", .rule(.r50, .r99))
  func park() {
    let log = record { time, loop, log in
      let timer = loop.after(.milliseconds(10)) { _ in time.stamp(log, "T") }
      timer.park()
      log.write("\(timer.isValid) \(loop.contains(timer, forMode: .default))")
      time.at(.seconds(9)) { timer.move(after: .milliseconds(3)) }
      log.write("\(loop.runUntilStopped())")
    }
    #expect(log == "true true E BT BS BW AW T9003 X finished")
  }

  @Test("a repeating timer can park itself and set itself back in its own call-out", .rule(.r99, .m30))
  func ownCallOut() {
    let log = record(observing: nil) { time, loop, log in
      let count = Counter()
      let timer = loop.every(.milliseconds(10)) { timer in
        time.stamp(log, "T")
        if count.add() == 1 { timer.move(after: .milliseconds(3)) } else { timer.park() }
      }
      time.at(.milliseconds(50)) { timer.deadline = time.instant(60) }
      loop.run(log, for: .milliseconds(100))
    }
    #expect(log == "T10 T13 T60 timedOut")
  }

  @Test(
    "a timer that is made with a duration is in the default mode of its loop, and counts by its clock",
    .rule(.r92, .r99b))
  func after() {
    let log = record(observing: nil) { time, loop, log in
      time.advance(by: .milliseconds(7))
      // Created by another thread, whose clock is a different one.
      onNewThread {
        let timer = loop.schedule(in: .milliseconds(5)) { _ in time.stamp(log, "T") }
        log.write("\(loop.contains(timer, forMode: .default))")
      }
      let tolerance = Duration.milliseconds(1)
      loop.schedule(in: .milliseconds(2), repeating: .milliseconds(4), tolerance: tolerance) { timer in
        time.stamp(log, "R")
        log.write("\(timer.tolerance)")
        timer.invalidate()
      }
      loop.run(log)
    }
    #expect(log == "true R10 0.001 T12 finished")
  }

  @Test("a timer that is made for a loop that has ended is invalid, and its block released", .rule(.r117, .m21))
  func ended() {
    let log = Log()
    let loop = onVirtualTime { _, loop in loop }
    let timer = { [token = Token(log)] in loop.schedule(in: .zero) { _ in token.touch() } }()
    #expect(!timer.isValid)
    #expect(log.text == "released")
  }

  /// Durations beyond the range of any clock.
  static let extremes: [Duration] = [
    .seconds(Int64.max), .seconds(Int64.min), .nanoseconds(Int64.max), .nanoseconds(Int64.min),
    Duration(attoseconds: .max), Duration(attoseconds: .min),
  ]

  @Test("durations beyond a clock's range are as long as it can count", .rule(.r13, .r95), arguments: extremes)
  func saturating(duration: Duration) {
    let isPast = duration < .zero
    let log = record(observing: nil) { time, loop, log in
      time.advance(by: .seconds(1))
      let timers = [
        RunLoop.current.schedule(in: duration) { _ in log.write("T") },
        RunLoop.current.schedule(in: duration, repeating: duration, tolerance: duration) { timer in
          log.write("R")
          timer.invalidate()
        },
        RunLoop.current.schedule(in: .zero, repeating: .seconds(1), tolerance: duration) { timer in
          log.write("Z")
          timer.move(after: duration)
          if isPast { timer.invalidate() }
        },
        Timer(deadline: loop.instant(after: duration), interval: duration, tolerance: duration) { _ in log.write("D") },
      ]
      for timer in timers { loop.add(timer, forMode: .default) }
      timers[0].move(after: duration)
      _ = timers.map(\.debugDescription)
      log.write("\(loop.run(mode: .default, for: isPast ? .milliseconds(1) : .seconds(10)))")
      log.write("\(timers.count(where: \.isValid))")
      let source = loop.keepAlive()
      if isPast { log.write("\(loop.run(mode: .default, for: duration))") }
      source.invalidate()
    }
    #expect(log == (isPast ? "R Z D T finished 0 timedOut" : "Z timedOut 4"))
  }
}
