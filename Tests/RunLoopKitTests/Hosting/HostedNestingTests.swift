// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Foundation
import RunLoopCore
import RunLoopKit
import TestRules
import Testing
import TestSupport

@Suite("Runs in the call-outs of both loops", .timeLimit(.minutes(20)))
struct HostedNestingTests {
  @Test("a call-out of Core Foundation's may run our loop, and what it leaves has its turn", .rule(.r108, .m32))
  func oursInTheirs() {
    let log = hosted { rig in
      rig.keepAlive()
      foundationTimer(after: 0.001) { _ in
        rig.write("[")
        foundationTimer(after: 0.001) { _ in
          rig.write("F")
          rig.loop.perform { rig.loop.stop() }
        }
        rig.run()
        rig.write("]")
        rig.loop.perform {
          rig.write("B")
          rig.loop.stop()
        }
      }
      rig.run()
    }
    #expect(log == "[ F stopped ] B stopped")
  }

  @Test(
    "what comes for our loop while a call-out of Core Foundation's runs it in another mode is not lost",
    .rule(.r35, .r36, .m2, .m32))
  func otherMode() throws {
    let pipe = try RawPipe()
    let log = hosted { rig in
      let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { source, _ in
        rig.write("D\(pipe.read().first ?? 0)")
        source.invalidate()
        rig.loop.stop()
      }
      try rig.loop.add(source, forMode: .default)
      rig.keepAlive("other")
      foundationTimer(after: 0.001) { _ in
        rig.whenAsleep { rig in
          rig.loop.perform { rig.write("B") }
          pipe.write([1])
          rig.loop.stop()
        }
        rig.run("other")
      }
      rig.run()
    }
    #expect(log == "stopped B D1 stopped")
  }

  @Test("a call-out of ours may run our loop again, and both are served there", .rule(.r109, .m32))
  func oursInOurs() {
    let log = hosted { rig in
      rig.keepAlive()
      rig.loop.perform {
        foundationTimer(after: 0.001) { _ in
          rig.write("F")
          rig.loop.stop()
        }
        rig.run()
        rig.loop.stop()
      }
      rig.run()
    }
    #expect(log == "F stopped stopped")
  }

  @Test(
    "a call-out of ours may run Core Foundation's loop by itself, and our loop is served after it", .rule(.m2, .m32))
  func theirsInOurs() throws {
    let pipe = try RawPipe()
    let log = hosted { rig in
      let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { source, _ in
        rig.write("D\(pipe.read().first ?? 0)")
        source.invalidate()
        rig.loop.stop()
      }
      try rig.loop.add(source, forMode: .default)
      rig.run(for: .milliseconds(1))
      rig.loop.perform {
        foundationTimer(after: 0.002) { _ in
          rig.write("F")
          CFRunLoopStop(rig.cf)
        }
        pipe.write([1])
        rig.loop.perform { rig.write("B") }
        // This run does not serve this package's ready descriptor.
        while CFRunLoopRunInMode(cfMode(.default), 30, true) != .stopped {}
        rig.write("|")
      }
      rig.run()
    }
    #expect(log == "timedOut F | D1 B stopped")
  }

  @Test(
    "what is posted while a call-out of Core Foundation's runs that loop by itself is not lost, and does not spin",
    .rule(.m2, .m32))
  func theirsInTheirs() {
    let log = hosted { rig in
      rig.keepAlive()
      let runs = Counter()
      foundationTimer(after: 0.001) { _ in
        rig.loop.perform {
          rig.write("B")
          rig.loop.stop()
        }
        // As `Process.waitUntilExit` does.
        let isOver = Box<Bool?>(nil)
        foundationTimer(after: 0.05) { _ in
          rig.write("F")
          isOver.value = true
        }
        while isOver.value == nil {
          runs.add()
          _ = Foundation.RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 0.02))
        }
        rig.write("|")
      }
      rig.run()
      rig.write(runs.value < 10 ? "few" : "\(runs.value) runs")
    }
    #expect(log == "F | B stopped few")
  }

  @Test(
    "the same for an observer of Core Foundation's that runs the loop before it waits, or as it enters",
    .rule(.r49, .m2, .m32))
  func byObservers() {
    for activity in [CFRunLoopActivity.entry, .beforeTimers, .beforeWaiting] {
      let log = hosted { rig in
        rig.keepAlive()
        let observer = CFRunLoopObserverCreateWithHandler(nil, activity.rawValue, false, 0) { _, _ in
          rig.write("O")
          rig.loop.perform {
            rig.write("B")
            rig.loop.stop()
          }
          _ = CFRunLoopRunInMode(cfMode(.default), 0.001, false)
        }
        CFRunLoopAddObserver(rig.cf, observer, cfMode(.default))
        rig.run()
      }
      #expect(log == "O B stopped", "\(activity)")
    }
  }
}
