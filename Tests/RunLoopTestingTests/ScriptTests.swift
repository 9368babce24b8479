// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopTesting
import Testing

@Suite("The script of future events, idleness, single passes")
struct ScriptTests {
  @Test(
    "scripted actions happen at their times in the given order, before timers of the same time")
  func script() throws {
    try VirtualTime.onThisThread { time in
      let loop = RunLoop.current
      RunLoop.current.schedule(in: .seconds(2)) { _ in time.log.write("timer") }
      time.at(.seconds(2)) { time.log.write("first") }
      time.at(.seconds(2)) { loop.perform { time.log.write("second") } }
      time.at(.seconds(1)) { time.log.write("early") }
      time.at(.seconds(9)) { time.log.write("never") }
      try time.advance(by: .seconds(3))
      #expect(time.log.timedCallOuts == "early@1000 first@2000 B@2000 second@2000 T@2000 timer@2000")
    }
  }

  @Test("a scripted action happens while the loop waits")
  func whileAsleep() throws {
    try VirtualTime.onThisThread { time in
      RunLoop.current.schedule(in: .milliseconds(10)) { _ in }
      time.at(.milliseconds(5)) { time.log.write("outside") }
      try time.advance(by: .milliseconds(20))
      #expect(time.log.text == "E BT BS BW outside AW T BT BS BW AW X")
    }
  }

  @Test("a scripted action adds to an empty loop, which then serves the item")
  func wakesEmpty() throws {
    try VirtualTime.onThisThread { time in
      let loop = RunLoop.current
      time.at(.seconds(1)) {
        _ = loop.schedule(in: .seconds(1)) { _ in time.log.write("fired") }
      }
      try time.advance(by: .seconds(5))
      #expect(time.log.timedCallOuts == "T@2000 fired@2000")
    }
  }

  @Test("an action whose time has passed happens the next time the loop sleeps")
  func late() throws {
    try VirtualTime.onThisThread { time in
      try time.advance(by: .seconds(10))
      time.at(.seconds(1)) { time.log.write("late") }
      try time.advance(by: .zero)
      #expect(time.log.timedCallOuts == "late@10000")
    }
  }

  @Test("an action may let time pass")
  func spends() throws {
    try VirtualTime.onThisThread { time in
      time.at(.seconds(1)) { time.spend(.seconds(5)) }
      RunLoop.current.schedule(in: .seconds(2)) { _ in time.log.write("late") }
      try time.advance(by: .seconds(3))
      #expect(time.log.timedCallOuts == "T@6000 late@6000")
    }
  }

  @Test("an action represents another thread, and cannot move the time")
  func insideEvent() throws {
    try VirtualTime.onThisThread { time in
      let failure = Box<VirtualTimeError?>(nil)
      time.at(.seconds(1)) {
        do throws(VirtualTimeError) { try time.advance(by: .seconds(1)) } catch { failure.value = error }
      }
      try time.advance(by: .seconds(2))
      #expect(failure.value == .insideEvent(thread: "the calling thread"))
      #expect(time.elapsed == .seconds(2))
    }
  }

  @Test("runUntilIdle ends at the last date")
  func idle() throws {
    try VirtualTime.onThisThread { time in
      let left = Box(3)
      RunLoop.current.schedule(in: .seconds(1), repeating: .seconds(10)) { timer in
        left.value -= 1
        if left.value == 0 { timer.invalidate() }
      }
      time.at(.seconds(100)) { time.log.write("outside") }
      try time.runUntilIdle()
      #expect(time.log.timedCallOuts == "T@1000 T@11000 T@21000 outside@100000")
      #expect(time.elapsed == .seconds(100))
      #expect(time.pending.isEmpty)
    }
  }

  @Test("a repeating timer never lets the time be idle, and the error names it")
  func neverIdle() throws {
    try VirtualTime.onThisThread { time in
      RunLoop.current.schedule(in: .seconds(1), repeating: .seconds(1)) { _ in }
      let error = #expect(throws: VirtualTimeError.self) { try time.runUntilIdle() }
      guard case .neverIdle(let elapsed, let moves, let pending)? = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(elapsed == .seconds(10_000) && moves == 10_000)
      #expect(
        pending == [
          "a timer of the test's thread in the mode kCFRunLoopDefaultMode, due 10001.0 seconds after the beginning, "
            + "every 1.0 seconds"
        ])
    }
  }

  @Test("a step makes one pass without moving the time")
  func steps() throws {
    try VirtualTime.onThisThread { time in
      let loop = RunLoop.current
      RunLoop.current.schedule(in: .seconds(1)) { _ in time.log.write("timer") }
      loop.perform { loop.perform { time.log.write("second") } }
      #expect(try time.step())
      #expect(time.log.text == "E BT BS B B second X" || time.log.text == "E BT BS B X")
      while try time.step() {}
      #expect(time.log.callOuts == "B B second")
      #expect(time.elapsed == .zero)
      time.spend(.seconds(1))
      #expect(try time.step())
      #expect(try !time.step())
    }
  }

  @Test("the next date and all pending events can be queried")
  func pending() throws {
    try VirtualTime.onThisThread { time in
      #expect(time.nextDeadline == nil && time.timeUntilNext == nil && time.pending.isEmpty)
      let parked = RunLoop.current.schedule(in: .seconds(1)) { _ in }
      parked.park()
      RunLoop.current.schedule(in: .seconds(3), repeating: .seconds(4), tolerance: .seconds(1)) { _ in }
      time.at(.seconds(2)) {}
      try time.advance(by: .milliseconds(500))
      #expect(time.timeUntilNext == .milliseconds(1500))
      #expect(time.nextDeadline == time.now.advanced(by: .milliseconds(1500)))
      #expect(
        time.pending.map(\.description) == [
          "an action of the test, due 2.0 seconds after the beginning",
          "a timer of the test's thread in the mode kCFRunLoopDefaultMode, due 3.0 seconds after the beginning, "
            + "every 4.0 seconds, at most 1.0 seconds later",
          "a timer of the test's thread in the mode kCFRunLoopDefaultMode, without a date",
        ])
      #expect(time.pending.map(\.deadline) == [.seconds(2), .seconds(3), nil])
      #expect(time.pending.last?.kind == .timer(mode: .default))
    }
  }

  @Test("an action can end sleeps that would otherwise last forever")
  func nothingIsDue() throws {
    try VirtualTime.onThisThread { time in
      let loop = RunLoop.current
      loop.add(RunLoop.Source {}, forMode: .default)
      time.whenNothingIsDue { loop.stop() }
      #expect(loop.runUntilStopped() == .stopped)
      #expect(time.elapsed == .zero)
    }
  }

  @Test("the log keeps its last entries, and can be cleared")
  func log() throws {
    try VirtualTime.onThisThread { time in
      for number in 0..<30_000 { time.log.write("\(number)") }
      #expect(time.log.text.hasPrefix("… 20000 20001 "))
      #expect(time.log.callOuts.hasSuffix(" 29998 29999"))
      time.log.clear()
      time.spend(.nanoseconds(1_000_007))
      time.log.write("entry")
      #expect(time.log.text == "entry")
      #expect(time.log.timedCallOuts == "entry@1+7ns")
    }
  }

  @Test("every abbreviation of the log appears")
  func letters() throws {
    try VirtualTime.onThisThread { time in
      let loop = RunLoop.current
      let source = RunLoop.Source {}
      loop.add(source, forMode: .default)
      source.signal()
      let port = Port { _, _ in }
      loop.add(port, forMode: .default)
      try port.send(Port.Message())
      loop.perform {}
      RunLoop.current.schedule(in: .seconds(1)) { _ in }
      try time.advance(by: .seconds(1))
      #expect(time.log.text == "E BT BS B S0 S1 BT BS BW AW T X")
    }
  }

  @Test("a ready descriptor is served before the time advances")
  func descriptors() throws {
    try VirtualTime.onThisThread { time in
      var ends: [Int32] = [0, 0]
      try #require(pipe(&ends) == 0)
      defer { for end in ends { close(end) } }
      let (readEnd, writeEnd) = (ends[0], ends[1])
      let source = RunLoop.DescriptorSource(descriptor: readEnd, events: .readable) { _, _ in
        var byte: UInt8 = 0
        read(readEnd, &byte, 1)
        time.log.write("read \(byte)")
      }
      try RunLoop.current.add(source, forMode: .default)
      RunLoop.current.schedule(in: .seconds(10)) { _ in time.log.write("time-out") }
      time.at(.seconds(4)) { write(writeEnd, [7 as UInt8], 1) }
      try time.advance(by: .seconds(20))
      #expect(time.log.timedCallOuts == "S1@4000 read 7@4000 T@10000 time-out@10000")
      source.invalidate()
    }
  }
}
