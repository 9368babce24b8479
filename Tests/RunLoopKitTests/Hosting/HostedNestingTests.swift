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
  @Test("a Core Foundation call-out may run our loop, and the remaining work is served later", .rule(.r108, .m32))
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
    "our work is not lost if it arrives while a Core Foundation call-out runs our loop in another mode",
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

  @Test("our call-outs may run our loop again, and both loops are served there", .rule(.r109, .m32))
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
    "our call-outs may run Core Foundation's loop alone, and our loop is served afterwards", .rule(.m2, .m32))
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
    "posts during a Core Foundation call-out's own run of that loop are not lost, and do not spin",
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
    "posts during a Core Foundation observer's run of the loop, at entry or before a wait, are not lost",
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
