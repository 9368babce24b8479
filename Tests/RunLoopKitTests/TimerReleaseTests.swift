// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit
import TestRules
import Testing
import TestSupport

enum TimerEnd: CaseIterable {
  case fired, invalidated, invalidatedInside, firedByHand, neverAdded
}

@Suite("Objects that a timer keeps alive", .timeLimit(.minutes(20)))
struct TimerReleaseTests {
  // L4: Foundation on Linux never releases timers or what their blocks capture.
  @Test(
    "an ended timer retains nothing, even if it is retained itself", .rule(.m18, .m22),
    arguments: TimerEnd.allCases)
  func captured(end: TimerEnd) {
    let released = onVirtualTime { _, loop in
      let (captured, carried, timer) = { () -> (WeakBox<Token>, WeakBox<Token>, Timer?) in
        let (captured, carried) = (Token(Log()), Token(Log()))
        let repeats = end == .invalidated || end == .invalidatedInside
        let timer = Timer(fire: .virtual(5), interval: 0.01, userInfo: carried, repeats: repeats) { timer in
          captured.touch()
          if end == .invalidatedInside { timer.invalidate() }
        }
        if end != .neverAdded { loop.add(timer, forMode: .common) }
        return (WeakBox(captured), WeakBox(carried), end == .neverAdded ? nil : timer)
      }()
      guard end == .neverAdded || (captured.object != nil && carried.object != nil) else { return false }
      switch end {
      case .fired, .invalidatedInside: loop.run(until: .distantFuture)
      case .invalidated: timer?.invalidate()
      case .firedByHand: timer?.fire()
      case .neverAdded: break
      }
      return captured.object == nil && carried.object == nil && timer?.isValid != true
    }
    #expect(released)
  }

  // L4: Foundation on Linux never releases timers or what their blocks capture.
  @Test("an ended timer without other references is released", .rule(.m18), arguments: [false, true])
  func timer(repeats: Bool) {
    let (before, after) = onVirtualTime { _, loop in
      let timer = {
        WeakBox(
          Timer.scheduledTimer(withTimeInterval: 0.005, repeats: repeats) { timer in
            if repeats { timer.invalidate() }
          })
      }()
      let before = timer.object != nil
      loop.run(until: .distantFuture)
      return (before, timer.object == nil)
    }
    #expect(before && after)
  }

  @Test("releases at a timer's end may use the timer and the loop, as no lock is held", .rule(.m22))
  func releaseReenters() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Box<Timer?>(nil)
      timer.value = {
        let carried = Token {
          timer.value?.fireDate = .distantPast
          log.write("\(timer.value?.isValid ?? true) \(timer.value?.fireDate.text ?? "")")
          log.write("\(loop.nextFireDate(forMode: .default)?.text ?? "none") \(timer.value?.userInfo == nil)")
        }
        return Timer.scheduledTimer(withTimeInterval: 0.005, userInfo: carried, repeats: true) { _ in }
      }()
      time.at(.milliseconds(3)) {
        timer.value?.invalidate()
        loop.wakeUp()
      }
      log.write("\(loop.run(mode: .default, before: .distantFuture))")
      return log.text
    }
    #expect(log == "false 5 none true true")
  }

  @Test(
    "a timer retains its userInfo until it ends, and timers without one retain nothing", .rule(.m22))
  func userInfo() {
    let text = onVirtualTime { _, loop in
      let timers = [
        Timer(fire: .virtual(5), interval: 1, userInfo: "a", repeats: true) { _ in },
        Timer(timeInterval: 1, userInfo: ["b": 1], repeats: true) { _ in },
        Timer.scheduledTimer(withTimeInterval: 1, userInfo: 3, repeats: false) { _ in },
        Timer(timeInterval: 1, userInfo: nil, repeats: true) { _ in },
        Timer(timeInterval: 1, repeats: true) { _ in },
      ]
      let carried =
        timers[0].userInfo as? String == "a" && timers[1].userInfo as? [String: Int] == ["b": 1]
        && timers[2].userInfo as? Int == 3 && timers[3].userInfo == nil && timers[4].userInfo == nil
      for timer in timers { timer.invalidate() }
      return "\(carried) \(timers.allSatisfy { $0.userInfo == nil })"
    }
    #expect(text == "true true")
  }

  @Test("a call-out finds its timer's userInfo, and any thread may read it", .rule(.m22))
  func userInfoInside() {
    let log = onVirtualTime { time, loop in
      let log = Log()
      let timer = Timer.scheduledTimer(withTimeInterval: 0.005, userInfo: ["count": 2], repeats: false) { timer in
        let info = timer.userInfo as? [String: Int]
        log.write("T\(info?["count"] ?? 0)")
        log.write(onNewThread { timer.userInfo == nil } ? "nothing" : "same")
      }
      loop.run(until: .distantFuture)
      log.write("\(timer.userInfo == nil)")
      return log.text
    }
    #expect(log == "T2 same true")
  }
}
