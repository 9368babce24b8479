// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("A loop that is kept beyond its thread", .timeLimit(.minutes(20)))
struct EndedLoopItemTests {
  @Test(
    "a loop whose thread has ended has released its timers and observers, which other loops can take",
    .rule(.r117, .m35),
    arguments: [RunLoop.Mode.default, .common])
  func letsGo(mode: RunLoop.Mode) {
    let log = Log()
    let timer = Timer(at: 0, every: .seconds(1)) { _ in }
    let observer = RunLoop.Observer(activities: .all) { _, _ in }
    let kept = onVirtualTime { _, loop in
      loop.add(timer, forMode: mode)
      loop.add(observer, forMode: mode)
      return loop
    }
    log.write("\(kept.contains(timer, forMode: .default)) \(kept.contains(observer, forMode: .default))")
    log.write("\(kept.contains(timer, forMode: .common)) \(kept.contains(observer, forMode: .common))")
    onVirtualTime { _, other in
      log.write("\(other.add(timer, forMode: .default) as Bool) \(other.add(observer, forMode: .default))")
    }
    #expect(log.text == "false false false false true true")
  }

  @Test("has rejected new items in the cancel call-outs of its end", .rule(.r115, .r117, .m21, .m35))
  func refusesInCancel() {
    let log = Log()
    let timer = Timer(at: 0, every: .seconds(1)) { _ in }
    let observer = RunLoop.Observer(activities: .all) { _, _ in }
    let source = RunLoop.Source(
      cancel: { loop, _ in
        log.write("\(loop.add(timer, forMode: .default) as Bool) \(loop.add(observer, forMode: .common))")
        log.write("\(loop.add(RunLoop.Source {}, forMode: .default))")
      }, perform: {})
    let kept = onVirtualTime { _, loop in
      loop.add(source, forMode: .default)
      return loop
    }
    log.write("\(kept.table.withLock { $0.allItems.count })")
    #expect(log.text == "false false false 0")
  }
}
