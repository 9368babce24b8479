// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Calls that a loop rejects")
struct RefusalTests {
  @Test("a block for no mode is rejected, counted and released", .rule(.r56, .m21))
  func noMode() {
    let log = record(observing: nil) { _, loop, log in
      func reject() -> Bool {
        let probe = Token(log)
        return loop.perform(inModes: []) { probe.touch() }
      }
      log.write("\(reject()) \(loop.statistics.rejectionCount)")
      loop.run(log)
    }
    #expect(log == "released false 1 finished")
  }

  @Test("an observer or a timer of another loop is rejected and counted", .rule(.r87, .r99b, .m21))
  func bound() {
    let log = record { _, loop, log in
      let observer = loop.observe(log)
      let timer = loop.after(.zero) { _ in log.write("T") }
      onVirtualTime { _, second in
        log.write("\(second.add(observer, forMode: .default)) \(second.add(timer, forMode: .common) as Bool)")
        log.write("\(second.contains(observer, forMode: .default)) \(second.contains(timer, forMode: .common))")
        log.write("\(second.statistics.rejectionCount)")
        second.run(log)
      }
      log.write("\(loop.contains(observer, forMode: .default)) \(loop.contains(timer, forMode: .default))")
      log.write("\(loop.statistics.rejectionCount)")
      loop.run(log, for: .zero)
    }
    #expect(log == "false false false false 2 finished true true 0 E E BT BT BS BS T X X timedOut")
  }

  @Test("an item that is already in a mode is neither rejected nor added twice", .rule(.r87, .r99b))
  func duplicates() {
    let log = record { _, loop, log in
      let source = RunLoop.Source { log.write("S0") }
      let timer = Timer(deadline: loop.waiter.now.instant) { _ in log.write("T") }
      for _ in 0..<2 {
        log.write("\(loop.add(source, forMode: .default)) \(loop.add(timer, forMode: .default) as Bool)")
      }
      source.signal()
      loop.run(log, for: .zero)
      log.write("\(loop.statistics.rejectionCount)")
    }
    #expect(log == "true true true true E BT BS S0 T X timedOut 0")
  }

  @Test("an invalid item is rejected", .rule(.r74, .r99c, .m21))
  func invalid() {
    let log = record(observing: nil) { _, loop, log in
      let source = RunLoop.Source {}
      let observer = RunLoop.Observer(activities: .all) { _, _ in }
      let timer = Timer(deadline: loop.waiter.now.instant) { _ in }
      let port = Port()
      source.invalidate()
      observer.invalidate()
      timer.invalidate()
      port.invalidate()
      log.write("\(loop.add(source, forMode: .default)) \(loop.add(observer, forMode: .default))")
      log.write("\(loop.add(timer, forMode: .default) as Bool) \(loop.add(port, forMode: .common) as Bool)")
      loop.run(log, for: .zero)
    }
    #expect(log == "false false false false finished")
  }

  @Test("a loop whose thread has ended rejects everything, and counts it", .rule(.r116, .r117, .m21))
  func ended() {
    let loop = onVirtualTime { _, loop in loop }
    #expect(loop.hasEnded)
    #expect(!loop.add(RunLoop.Source {}, forMode: .default))
    #expect(!loop.add(RunLoop.Observer(activities: .all) { _, _ in }, forMode: .common))
    #expect(!loop.add(Timer(timeInterval: 1, repeats: false) { _ in }, forMode: .default))
    #expect(!loop.add(Port(), forMode: .default))
    #expect(!loop.perform {})
    #expect(!loop.perform(inModes: ["a", "b"]) {})
    #expect(loop.statistics.rejectionCount == 6)
    #expect(loop.statistics.droppedBlockCount == 0)
    #expect(throws: RunLoopError.loopHasEnded) { try loop.addCommonMode("a") }
  }

  @Test("waking, stopping and asking a loop whose thread has ended is harmless", .rule(.r116, .r117))
  func endedIsHarmless() {
    let loop = onVirtualTime { _, loop in
      loop.keepAlive("a")
      return loop
    }
    loop.wakeUp()
    loop.stop()
    loop.stop(mode: "b")
    #expect(loop.modes == [.default, "a"])
    #expect(loop.currentMode == nil && !loop.isWaiting)
    #expect(loop.nextDeadline(forMode: .default) == nil)
  }

  @Test("a rejected block is not a dropped one", .rule(.m14, .m21))
  func refusedIsNotDropped() {
    let loop = onVirtualTime { _, loop in
      loop.perform(inModes: []) {}
      loop.perform {}
      return loop
    }
    #expect(
      loop.statistics
        == RunLoop.Statistics(
          savedWakeUpCount: 0, droppedBlockCount: 1, droppedNotificationCount: 0, rejectionCount: 1, lookCount: 0))
  }

  @Test("a timer that is ended while another thread is adding it is rejected, and not kept forever", .rule(.r99c, .m21))
  func endedMeanwhile() {
    onVirtualTime { _, loop in
      let timer = Timer(deadline: loop.waiter.now.instant) { _ in }
      #expect(!loop.join(EndedMeanwhile(timer), .default))
      #expect(!loop.contains(timer, forMode: .default) && loop.itemCounts.timers == 0)
      #expect(loop.statistics.rejectionCount == 1 && !timer.isValid)
    }
  }
}

/// A timer that its loop's thread ends (holding only the loop's lock) after it was found valid but before it is
/// added.
private final class EndedMeanwhile: ModeItem {
  private let timer: Timer

  init(_ timer: Timer) { self.timer = timer }

  func lockItem() { timer.lockItem() }
  func unlockItem() { timer.unlockItem() }
  func hold() -> Bool { timer.hold() }
  func letGo() { timer.letGo() }
  var isOpen: Bool { timer.isOpen }
  func mayJoin(_ loop: RunLoop, leaving former: inout RunLoop?) -> Bool {
    timer.invalidate()
    return timer.mayJoin(loop, leaving: &former)
  }
  func setCommon(_ isCommon: Bool, of loop: RunLoop) { timer.setCommon(isCommon, of: loop) }
  func modes(of loop: RunLoop) -> ShortList<ModeState> { timer.modes(of: loop) }
  func isIn(_ mode: ModeState, of loop: RunLoop) -> Bool { timer.isIn(mode, of: loop) }
  func enter(_ mode: ModeState, of loop: RunLoop, _ table: inout ModeTable) { timer.enter(mode, of: loop) }
  func leave(_ mode: ModeState, of loop: RunLoop) { timer.leave(mode, of: loop) }
}
