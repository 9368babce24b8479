// SPDX-License-Identifier: Apache-2.0

import CoreFoundation
import Foundation
import RunLoopCore
import RunLoopKit
import TestRules
import Testing

@Suite("Modes of a loop that waits in Core Foundation's", .timeLimit(.minutes(20)))
struct HostedModeTests {
  @Test("running a mode that is empty in both loops finishes at once, and creates no mode", .rule(.r24, .r25, .m32))
  func empty() {
    let log = hosted { rig in
      rig.observe("observed")
      rig.run()
      rig.run("unknown")
      rig.run("observed")
      rig.write("\(rig.loop.modes == [.default, "observed"])")
      rig.run(.common)
    }
    #expect(log == "finished finished finished true finished")
  }

  @Test(
    "a run lasts as long as Foundation has items in the mode, and ends with the last one", .rule(.r25, .r29, .m32)
  )
  func lasts() {
    let log = hosted { rig in
      foundationTimer(after: 0.001) { _ in rig.write("F") }
      rig.run()
      foundationTimer(after: 0.001) { _ in
        rig.write("F")
        foundationTimer(after: 0.001) { _ in rig.write("G") }
      }
      rig.loop.run()
      rig.write("returned")
    }
    #expect(log == "F finished F G returned")
  }

  @Test("the last Core Foundation item may be removed in a call-out that is not a source", .rule(.r25, .m32))
  func lastLeaves() {
    let log = hosted { rig in
      let source = CFSource { rig.write("never") }
      source.add(to: rig)
      foundationTimer(after: 0.001) { _ in
        rig.write("F")
        CFRunLoopPerformBlock(rig.cf, cfMode(.default)) {
          rig.write("CB")
          source.invalidate()
        }
      }
      rig.run()
      // Nor do the items that this package's loop has at the beginning.
      let anchor = rig.keepAlive()
      foundationTimer(after: 0.001) { _ in
        anchor.invalidate()
        foundationTimer(after: 0.001) { _ in rig.write("G") }
      }
      rig.run()
    }
    #expect(log == "F CB finished G finished")
  }

  @Test("our items may be added and removed while Core Foundation's loop waits", .rule(.r25, .m32))
  func oursComes() {
    let log = hosted { rig in
      let timer = foundationTimer(after: 0.001) { _ in
        rig.loop.add(Timer(timeInterval: 0.001, repeats: false) { _ in rig.write("T") }, forMode: .default)
      }
      rig.run()
      rig.write("\(timer.isValid)")
    }
    #expect(log == "T finished false")
  }

  @Test("a mode that only Core Foundation's loop has can be run, and is created in ours", .rule(.r22, .r24, .m32))
  func theirMode() {
    let log = hosted { rig in
      foundationTimer(after: 0.001, mode: .init("theirs")) { _ in rig.write("F \(rig.loop.currentMode == "theirs")") }
      rig.run("theirs")
      rig.write("\(rig.loop.modes.contains("theirs"))")
      rig.run("theirs")
    }
    #expect(log == "F true finished true finished")
  }

  @Test("a run serves only the same mode of Core Foundation's loop", .rule(.r20, .r108, .m32))
  func oneMode() {
    let log = hosted { rig in
      let source = CFSource { rig.write("default") }
      source.add(to: rig)
      CFRunLoopSourceSignal(source.source)
      foundationTimer(after: 0.001, mode: .init("other")) { _ in
        rig.write("other")
        rig.loop.stop()
      }
      rig.keepAlive("other")
      rig.run("other")
      rig.run(for: .zero)
      source.invalidate()
    }
    #expect(log == "other stopped default timedOut")
  }

  @Test(
    "a mode common in our loop is common in Core Foundation's from its next wait on",
    .rule(.r101, .r102, .m32))
  func commonModes() {
    let log = hosted { rig in
      rig.keepAlive("early")
      rig.keepAlive("late")
      try rig.loop.addCommonMode("early")
      Foundation.RunLoop.current.add(
        Foundation.Timer(timeInterval: 0, repeats: false) { _ in
          rig.write("F")
          rig.loop.stop()
        }, forMode: .common)
      rig.run("early")
      try rig.loop.addCommonMode("late")
      let source = CFSource {
        rig.write("S0")
        rig.loop.stop()
      }
      source.add(to: rig, .common)
      CFRunLoopSourceSignal(source.source)
      rig.run("late")
      source.invalidate()
    }
    #expect(log == "F stopped S0 stopped")
  }
}
