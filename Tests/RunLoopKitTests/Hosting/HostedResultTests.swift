// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Foundation
import RunLoopCore
import RunLoopKit
import TestRules
import Testing
import TestSupport

@Suite("Our results after Core Foundation's loop has handled an item", .timeLimit(.minutes(20)))
struct HostedResultTests {
  @Test("a Core Foundation source of version 0 counts as a handled source", .rule(.r6, .r8, .m32))
  func source0() {
    let log = hosted { rig in
      let source = CFSource { rig.write("S0") }
      source.add(to: rig)
      rig.whenAsleep { source.signal($0) }
      rig.run(returnAfterSourceHandled: true)
      // Signaled before the run.
      source.signal(rig)
      rig.run(returnAfterSourceHandled: true)
      source.invalidate()
    }
    #expect(log == "S0 handledSource S0 handledSource")
  }

  @Test("a Core Foundation source of version 1 counts as a handled source", .rule(.r6, .r8, .m32))
  func source1() throws {
    let pipe = try RawPipe()
    let log = hosted { rig in
      let source = CFSource(pipe.reading) { rig.write("S1") }
      source.add(to: rig)
      rig.whenAsleep { _ in pipe.write([1]) }
      rig.run(returnAfterSourceHandled: true)
      pipe.write([1])
      rig.run(returnAfterSourceHandled: true)
      source.invalidate()
    }
    #expect(log == "S1 handledSource S1 handledSource")
  }

  @Test("Core Foundation's timers, blocks and wake-ups are not sources, and cause no pass of ours", .rule(.r8, .m32))
  func noSources() {
    let log = hosted { rig in
      rig.keepAlive()
      rig.observe()
      foundationTimer(after: 0.001) { _ in
        rig.write("F")
        rig.detach {
          waitUntil { CFRunLoopIsWaiting(rig.cf) }
          CFRunLoopPerformBlock(rig.cf, cfMode(.default)) {
            rig.write("CB")
            rig.loop.stop()
          }
          CFRunLoopWakeUp(rig.cf)
        }
      }
      rig.run(returnAfterSourceHandled: true)
    }
    #expect(log == "E BT BS BW F CB AW X stopped")
  }

  @Test("a Core Foundation source that posts to our loop in the same pass counts as handled", .rule(.r8, .m20, .m32))
  func shared() {
    let log = hosted { rig in
      // The gate opens while the source performs, so Core Foundation serves it in the same pass.
      let source = CFSource {
        rig.write("S0")
        rig.loop.perform { rig.write("B") }
      }
      source.add(to: rig)
      rig.whenAsleep { source.signal($0) }
      rig.run(returnAfterSourceHandled: true)
      source.invalidate()
    }
    #expect(log == "S0 B handledSource")
  }

  @Test(
    "our posts, dates and descriptors are no handled sources, however often they end the wait",
    .rule(.r8, .m20, .m32))
  func notShared() {
    let log = hosted { rig in
      rig.keepAlive()
      rig.loop.add(Timer(timeInterval: 0.001, repeats: false) { _ in rig.write("T") }, forMode: .default)
      rig.detach {
        waitUntil { rig.text.contains("T") && rig.loop.isWaiting }
        rig.loop.perform { rig.write("B") }
        waitUntil { rig.text.contains("B") && rig.loop.isWaiting }
        rig.loop.perform(inModes: ["other"]) {}
        rig.loop.stop()
      }
      rig.run(returnAfterSourceHandled: true)
    }
    #expect(log == "T B stopped")
  }

  @Test("a polling run serves what is ready, one source of each loop", .rule(.r9, .r12, .m32))
  func polling() {
    let log = hosted { rig in
      let sources = ["a", "b"].map { name in CFSource { rig.write(name) } }
      for source in sources {
        source.add(to: rig)
        CFRunLoopSourceSignal(source.source)
      }
      CFRunLoopPerformBlock(rig.cf, cfMode(.default)) { rig.write("CB") }
      rig.run(for: .zero, returnAfterSourceHandled: true)
      rig.run(for: .zero, returnAfterSourceHandled: true)
      rig.run(for: .zero, returnAfterSourceHandled: true)
      let ours = RunLoop.Source { rig.write("c") }
      rig.loop.add(ours, forMode: .default)
      ours.signal()
      CFRunLoopSourceSignal(sources[0].source)
      rig.run(for: .zero)
      for source in sources { source.invalidate() }
    }
    #expect(log == "CB a handledSource b handledSource timedOut c a timedOut")
  }

  @Test("a loop that always has its own work still serves Core Foundation's", .rule(.r3, .r11, .m1, .m32))
  func busy() {
    let log = hosted { rig in
      let ours = Box<RunLoop.Source?>(nil)
      let source = RunLoop.Source { ours.value?.signal() }
      ours.value = source
      rig.loop.add(source, forMode: .default)
      source.signal()
      let theirs = CFSource {
        rig.write("S0")
        rig.loop.stop()
      }
      theirs.add(to: rig)
      rig.detach { theirs.signal(rig) }
      rig.run()
      source.invalidate()
      ours.value = nil
      theirs.invalidate()
    }
    #expect(log == "S0 stopped")
  }

  @Test("a stop of Core Foundation's loop stops our innermost run", .rule(.r35, .m32))
  func stop() {
    let log = hosted { rig in
      rig.keepAlive()
      rig.whenAsleep { CFRunLoopStop($0.cf) }
      rig.run()
      rig.loop.perform {
        rig.whenAsleep { CFRunLoopStop($0.cf) }
        rig.run()
        rig.loop.perform {
          rig.write("B")
          rig.loop.stop()
        }
      }
      rig.run()
    }
    #expect(log == "stopped stopped B stopped")
  }

  @Test(
    "a stopping thread's loop returns from Core Foundation's wait, and runs no more", .rule(.r34, .r43, .m24, .m32)
  )
  func stopping() {
    let log = hosted { rig in
      rig.keepAlive()
      rig.whenAsleep { $0.loop.stopForGood() }
      rig.loop.run()
      rig.run()
    }
    #expect(log == "stopped")
  }
}
