// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Foundation
import RunLoopCore
import RunLoopKit
import TestRules
import Testing
import TestSupport

@Suite("A loop that waits in Core Foundation's", .timeLimit(.minutes(20)))
struct HostedWaitTests {
  @Test("timers of both loops fire while ours runs", .rule(.m32))
  func timers() {
    let log = hosted { rig in
      let ours = Timer(timeInterval: 1000, repeats: false) { _ in rig.write("T") }
      rig.loop.add(ours, forMode: .default)
      // Foundation's timer sets this package's date, because two dates that are close together could be due at the
      // same time.
      foundationTimer(after: 0.001) { _ in
        rig.write("F")
        ours.deadline = rig.loop.now.advanced(by: .milliseconds(1))
      }
      rig.run()
    }
    #expect(log == "F T finished")
  }

  @Test(
    "a post, a timer, a message, a signal with a wake-up, and a stop from another thread end the wait",
    .rule(.r50, .r70, .m2, .m3, .m32))
  func fromAnotherThread() {
    let log = hosted { rig in
      let source = RunLoop.Source { rig.write("S0") }
      rig.loop.add(source, forMode: .default)
      let port = Port { _, _ in rig.write("S1") }
      rig.loop.add(port, forMode: .default)
      rig.detach {
        // Each step begins after the previous one was served and the loop sleeps again.
        func awaitEntries(_ entries: String) { waitUntil { rig.text == entries && rig.loop.isWaiting } }
        awaitEntries("")
        rig.loop.perform { rig.write("B") }
        awaitEntries("B")
        rig.loop.add(Timer(timeInterval: 0.001, repeats: false) { _ in rig.write("T") }, forMode: .default)
        awaitEntries("B T")
        try? port.send(Port.Message())
        awaitEntries("B T S1")
        source.signal()
        rig.loop.wakeUp()
        awaitEntries("B T S1 S0")
        rig.loop.stop()
      }
      rig.run()
    }
    #expect(log == "B T S1 S0 stopped")
  }

  @Test(
    "our wake-up causes a pass but no handled source, and Core Foundation's causes no pass of ours",
    .rule(.r45, .m20, .m32))
  func wakeUps() {
    let log = hosted { rig in
      rig.observe()
      rig.keepAlive()
      rig.detach {
        func awaitPasses(_ count: Int) {
          waitUntil { rig.text.split(separator: " ").count { $0 == "BW" } >= count && rig.loop.isWaiting }
        }
        awaitPasses(1)
        CFRunLoopWakeUp(rig.cf)
        rig.loop.wakeUp()
        awaitPasses(2)
        rig.loop.perform { rig.write("B") }
        awaitPasses(3)
        rig.loop.stop()
      }
      rig.run(returnAfterSourceHandled: true)
    }
    #expect(log == "E BT BS BW AW BT BS BW AW B BT BS BW AW X stopped")
  }

  @Test("the run's timeout ends the wait, and so does a timer moved to an earlier date", .rule(.r14, .r13, .m32))
  func deadlines() {
    let log = hosted { rig in
      rig.keepAlive()
      rig.run(for: .milliseconds(2))
      let timer = Timer(timeInterval: 1000, repeats: false) { _ in
        rig.write("T")
        rig.loop.stop()
      }
      rig.loop.add(timer, forMode: .default)
      rig.whenAsleep { _ in timer.deadline = SuspendingClock.now.advanced(by: .milliseconds(1)) }
      rig.run()
    }
    #expect(log == "timedOut T stopped")
  }

  @Test("our descriptors stay level-triggered when Core Foundation's loop is served", .rule(.r77, .r10, .m6, .m32))
  func descriptors() throws {
    let pipe = try RawPipe()
    let log = hosted { rig in
      let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { source, _ in
        rig.write("D\(pipe.read().first ?? 0)")
        if rig.text.contains("D4") { source.invalidate() }
      }
      try rig.loop.add(source, forMode: .default)
      rig.whenAsleep { _ in pipe.write([1, 2, 3]) }
      rig.run(returnAfterSourceHandled: true)
      rig.run(returnAfterSourceHandled: true)
      rig.run(for: .zero)
      rig.whenAsleep { _ in pipe.write([4]) }
      rig.run()
    }
    #expect(log == "D1 handledSource D2 handledSource D3 timedOut D4 finished")
  }

  @Test(
    "a waiting loop watches its first descriptor, and removing the last one on another thread does not wake the loop",
    .rule(.m3, .m32))
  func descriptorWhileAsleep() throws {
    let pipe = try RawPipe()
    let log = hosted { rig in
      let anchor = rig.keepAlive()
      let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in
        rig.write("D\(pipe.read().first ?? 0)")
      }
      rig.detach {
        waitUntil { rig.loop.isWaiting }
        try? rig.loop.add(source, forMode: .default)
        pipe.write([5])
        waitUntil { rig.text.contains("D5") && rig.loop.isWaiting }
        anchor.invalidate()
        source.invalidate()
        rig.write(rig.loop.isWaiting ? "waits" : "woke")
        rig.loop.stop()
      }
      rig.run()
    }
    #expect(log == "D5 waits stopped")
  }

  @Test("under fire from four threads nothing is lost and nothing is called twice", .rule(.r120, .m2, .m32))
  func underFire() {
    let perThread = 1000
    let log = hosted { rig in
      let counted = Counted(4 * perThread) { rig.loop.stop() }
      rig.keepAlive()
      for number in 0..<4 {
        rig.detach {
          for turn in 0..<perThread {
            switch (number + turn) % 4 {
            case 0: rig.loop.perform { counted.count() }
            case 1:
              rig.loop.add(
                Timer(timeInterval: Double(turn % 50) / 1e6, repeats: false) { _ in counted.count() }, forMode: .default
              )
            case 2:
              CFRunLoopPerformBlock(rig.cf, cfMode(.default)) { counted.count() }
              CFRunLoopWakeUp(rig.cf)
            default:
              let source = RunLoop.Source { counted.count() }
              rig.loop.add(source, forMode: .default)
              source.signal()
              rig.loop.wakeUp()
            }
          }
        }
      }
      rig.run(for: .unlimited)
      rig.write("\(counted.value)")
    }
    #expect(log == "stopped \(4 * perThread)")
  }
}
