// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting
import Testing

@Suite("advance(by:)")
struct AdvanceTests {
  @Test("everything that becomes due within the duration is called in order, at its date")
  func inOrder() throws {
    try VirtualTime.onThisThread { time in
      RunLoop.current.schedule(in: .milliseconds(20)) { _ in time.log.write("b") }
      RunLoop.current.schedule(in: .milliseconds(10)) { _ in time.log.write("a") }
      RunLoop.current.schedule(in: .milliseconds(31)) { _ in time.log.write("c") }
      try time.advance(by: .milliseconds(30))
      #expect(time.log.timedCallOuts == "T@10 a@10 T@20 b@20")
      #expect(time.elapsed == .milliseconds(30))
      try time.advance(by: .milliseconds(1))
      #expect(time.log.timedCallOuts == "T@10 a@10 T@20 b@20 T@31 c@31")
    }
  }

  @Test("advance(by:) makes the passes of a real loop")
  func passes() throws {
    try VirtualTime.onThisThread { time in
      RunLoop.current.schedule(in: .milliseconds(10)) { _ in }
      try time.advance(by: .milliseconds(20))
      #expect(time.log.text == "E BT BS BW AW T BT BS BW AW X")
    }
  }

  @Test("advance(by:) lets the time pass in an empty loop")
  func empty() throws {
    try VirtualTime.onThisThread { time in
      try time.advance(by: .seconds(5))
      #expect(time.log.text == "E BT BS BW AW X")
      #expect(RunLoop.current.now == time.now)
      #expect(time.elapsed == .seconds(5))
    }
  }

  @Test("with no time, advance(by:) calls only what is ready or due now", arguments: [Duration.zero, .seconds(-1)])
  func nothing(duration: Duration) throws {
    try VirtualTime.onThisThread { time in
      try time.advance(by: duration)
      #expect(time.log.text == "")
      RunLoop.current.perform { RunLoop.current.perform { time.log.write("second") } }
      RunLoop.current.schedule(in: .zero) { _ in time.log.write("now") }
      RunLoop.current.schedule(in: .nanoseconds(1)) { _ in time.log.write("later") }
      try time.advance(by: duration)
      #expect(time.log.callOuts == "B T now B second" || time.log.callOuts == "B B second T now")
      #expect(time.elapsed == .zero)
    }
  }

  @Test("work posted at the last moment is done before the advance returns")
  func lastMoment() throws {
    try VirtualTime.onThisThread { time in
      let loop = RunLoop.current
      let source = RunLoop.Source { time.log.write("source") }
      loop.add(source, forMode: .default)
      RunLoop.current.schedule(in: .seconds(1)) { _ in
        source.signal()
        RunLoop.current.schedule(in: .zero) { _ in loop.perform { time.log.write("block") } }
      }
      try time.advance(by: .seconds(1))
      #expect(time.log.count(of: "source") == 1)
      #expect(time.log.count(of: "block") == 1)
      #expect(time.elapsed == .seconds(1))
    }
  }

  @Test("a repeating timer fires at each date of a long advance")
  func repeating() throws {
    try VirtualTime.onThisThread { time in
      let fires = Box(0)
      let timer = RunLoop.current.schedule(in: .seconds(1), repeating: .seconds(1)) { _ in fires.value += 1 }
      try time.advance(by: .seconds(3600))
      #expect(fires.value == 3600)
      timer.invalidate()
      try time.advance(by: .seconds(3600))
      #expect(fires.value == 3600)
    }
  }

  @Test("a timer with a tolerance fires when the loop wakes for it, for another, or at the end")
  func tolerance() throws {
    try VirtualTime.onThisThread { time in
      let timer = RunLoop.current.schedule(in: .seconds(10), tolerance: .seconds(5)) { _ in time.log.write("tolerant") }
      #expect(time.timeUntilNext == .seconds(15))
      try time.advance(by: .seconds(9))
      #expect(time.log.callOuts == "")
      try time.advance(by: .seconds(20))
      #expect(time.log.timedCallOuts == "T@15000 tolerant@15000")
      _ = timer
    }
    try VirtualTime.onThisThread { time in
      RunLoop.current.schedule(in: .seconds(10), tolerance: .seconds(5)) { _ in time.log.write("tolerant") }
      RunLoop.current.schedule(in: .seconds(12)) { _ in time.log.write("exact") }
      try time.advance(by: .seconds(20))
      #expect(time.log.timedCallOuts == "T@12000 tolerant@12000 T@12000 exact@12000")
    }
    try VirtualTime.onThisThread { time in
      RunLoop.current.schedule(in: .seconds(10), tolerance: .seconds(5)) { _ in time.log.write("tolerant") }
      try time.advance(by: .seconds(11))
      #expect(time.log.timedCallOuts == "T@11000 tolerant@11000")
    }
  }

  @Test("a slow call-out delays timers that become due meanwhile, and skips their missed dates")
  func takesTime() throws {
    try VirtualTime.onThisThread { time in
      RunLoop.current.schedule(in: .seconds(1)) { _ in time.spend(.milliseconds(3500)) }
      RunLoop.current.schedule(in: .seconds(2), repeating: .seconds(1)) { _ in time.log.write("tick") }
      try time.advance(by: .seconds(6))
      #expect(time.log.timedCallOuts == "T@1000 T@4500 tick@4500 T@5000 tick@5000 T@6000 tick@6000")
    }
  }

  @Test("a call-out that takes longer than the rest of the duration ends the advance late")
  func takesTooLong() throws {
    try VirtualTime.onThisThread { time in
      RunLoop.current.schedule(in: .seconds(1)) { _ in time.spend(.seconds(10)) }
      try time.advance(by: .seconds(2))
      #expect(time.elapsed == .seconds(11))
    }
  }

  @Test("a call-out that advances the time runs the loop itself, and leaves less for the outer call")
  func nested() throws {
    try VirtualTime.onThisThread { time in
      let failed = Box(false)
      RunLoop.current.schedule(in: .seconds(1)) { _ in
        time.log.write("[")
        do { try time.advance(by: .seconds(2)) } catch { failed.value = true }
        time.log.write("]")
      }
      RunLoop.current.schedule(in: .seconds(2)) { _ in time.log.write("inner") }
      RunLoop.current.schedule(in: .seconds(4)) { _ in time.log.write("outer") }
      try time.advance(by: .seconds(4))
      #expect(!failed.value)
      #expect(time.log.timedCallOuts == "T@1000 [@1000 T@2000 inner@2000 ]@3000 T@4000 outer@4000")
      #expect(time.log.text == "E BT BS BW AW T [ E BT BS BW AW T inner BT BS BW AW X ] BT BS BW AW T outer X")
    }
  }

  @Test("a call-out that advances beyond the outer call's end leaves it nothing to do")
  func nestedBeyond() throws {
    try VirtualTime.onThisThread { time in
      RunLoop.current.schedule(in: .seconds(1)) { _ in try? time.advance(by: .seconds(9)) }
      try time.advance(by: .seconds(2))
      #expect(time.elapsed == .seconds(10))
    }
  }

  @Test("a nested run in a call-out lets its own time pass")
  func nestedRun() throws {
    try VirtualTime.onThisThread { time in
      RunLoop.current.schedule(in: .seconds(1)) { _ in
        time.log.write("\(RunLoop.current.run(mode: .default, for: .seconds(5)))")
      }
      RunLoop.current.schedule(in: .seconds(3)) { _ in time.log.write("inner") }
      try time.advance(by: .seconds(2))
      // The timer that is being called keeps the mode alive.
      #expect(time.log.timedCallOuts == "T@1000 T@3000 inner@3000 timedOut@6000")
      #expect(time.elapsed == .seconds(6))
    }
  }

  @Test("code that runs the loop itself sleeps on the virtual time")
  func ownRun() throws {
    try VirtualTime.onThisThread { time in
      RunLoop.current.schedule(in: .seconds(60)) { _ in time.log.write("fired") }
      #expect(RunLoop.current.run(mode: .default, for: .seconds(3600)) == .finished)
      #expect(time.log.timedCallOuts == "T@60000 fired@60000")
    }
  }

  @Test("a stop ends a run but not the advance")
  func stopped() throws {
    try VirtualTime.onThisThread { time in
      RunLoop.current.schedule(in: .seconds(1)) { _ in RunLoop.current.stop() }
      RunLoop.current.schedule(in: .seconds(2)) { _ in time.log.write("later") }
      try time.advance(by: .seconds(3))
      #expect(time.log.timedCallOuts == "T@1000 T@2000 later@2000")
      #expect(time.log.text == "E BT BS BW AW T X E BT BS BW AW T later BT BS BW AW X")
    }
  }

  @Test("an advance in another mode serves that mode's items")
  func otherMode() throws {
    try VirtualTime.onThisThread { time in
      let loop = RunLoop.current
      loop.add(Timer(timeInterval: 1, repeats: false) { _ in time.log.write("default") }, forMode: .default)
      loop.add(Timer(timeInterval: 2, repeats: false) { _ in time.log.write("tracking") }, forMode: .tracking)
      try time.advance(by: .seconds(3), inMode: .tracking)
      #expect(time.log.timedCallOuts == "T@2000 tracking@2000")
      try time.advance(by: .zero)
      #expect(time.log.callOuts == "T tracking T default")
    }
  }

  @Test("run(until:) advances to an instant of the loop's clock")
  func until() throws {
    try VirtualTime.onThisThread { time in
      RunLoop.current.schedule(in: .seconds(1), repeating: .seconds(1)) { _ in }
      try time.run(until: time.now.advanced(by: .milliseconds(2500)))
      #expect(time.log.timedCallOuts == "T@1000 T@2000")
      try time.run(until: time.now.advanced(by: .seconds(-1)))
      #expect(time.elapsed == .milliseconds(2500))
    }
  }

  @Test("the wall clock starts at 2001, follows the time, and can be set")
  func wallClock() throws {
    try VirtualTime.onThisThread { time in
      try time.advance(by: .seconds(100))
      let timer = Timer(timeInterval: 20, repeats: false) { _ in }
      #expect(timer.wallDateForTests == 120)
      time.setWallClock(by: .seconds(1000))
      #expect(Timer(timeInterval: 20, repeats: false) { _ in }.wallDateForTests == 1120)
    }
  }

  @Test("the thread gets its own loop and object back afterwards")
  func comesBack() throws {
    let loop = RunLoop.current
    let ran = Box(false)
    let inner = try VirtualTime.onThisThread { time in
      loop.perform { ran.value = true }
      try time.advance(by: .seconds(1))
      return RunLoop.current
    }
    #expect(!ran.value)
    #expect(inner !== loop && inner.hasEnded)
    #expect(RunLoop.current === loop && !loop.hasEnded)
    loop.run(mode: .default, for: .zero)
    #expect(ran.value)
  }

  @Test("virtual times can be nested, and each moves by itself")
  func withinAnother() throws {
    try VirtualTime.onThisThread { outer in
      let loop = RunLoop.current
      try VirtualTime.onThisThread { inner in
        try inner.advance(by: .seconds(5))
        #expect(RunLoop.current !== loop)
        #expect(throws: VirtualTimeError.self) { try outer.advance(by: .seconds(1)) }
      }
      #expect(RunLoop.current === loop)
      #expect(outer.elapsed == .zero)
      try outer.advance(by: .seconds(1))
    }
  }
}
