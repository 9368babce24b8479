// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Foundation
import RunLoopCore
import RunLoopKit
import Testing
import TestSupport

@Suite("What Core Foundation's loop has handled, and our results", .timeLimit(.minutes(20)))
struct HostedResultTests {
  // R6, R8, M33
  @Test("a source of version 0 is a handled source")
  func source0() {
    let log = hosted { rig in
      let source = CFSource { rig.write("S0") }
      source.add(to: rig)
      rig.whenAsleep { source.signal($0) }
      rig.run(returnAfterSourceHandled: true)
      // Signalled before the run.
      source.signal(rig)
      rig.run(returnAfterSourceHandled: true)
      source.invalidate()
    }
    #expect(log == "S0 handledSource S0 handledSource")
  }

  // R6, R8, M33
  @Test("a source of version 1 is a handled source")
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

  // R8, M33
  @Test("timers, blocks and wake-ups of Core Foundation's are none, and make no pass of ours")
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

  // R8, M20, M33
  @Test("a source that posts to our loop in the same pass is a handled source all the same")
  func shared() {
    let log = hosted { rig in
      // The gate opens while the source is performed: Core Foundation serves it in the pass of the source.
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

  // R8, M20, M33
  @Test("posts, dates and descriptors of ours are none, however often they end Core Foundation's wait")
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

  // R9, R12, M33
  @Test("a run that polls serves what is ready there, one source of each loop")
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

  // R3, R11, M1, M33
  @Test("a loop that always has work of its own serves Core Foundation's too")
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

  // R35, M33
  @Test("a stop of Core Foundation's loop stops the innermost run of ours")
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

  // R34, R43, M25, M33
  @Test("the loop of a stopping thread returns from Core Foundation's wait, and runs no more")
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
