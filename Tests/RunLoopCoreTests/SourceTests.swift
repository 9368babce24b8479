// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("Sources", .timeLimit(.minutes(20)))
struct SourceTests {
  @Test("a source that is signalled again before it ran performs once", .rule(.r63))
  func coalesced() {
    let log = record { _, loop, log in
      let source = loop.signalled { log.write("S0") }
      source.signal()
      loop.run(log)
    }
    #expect(log == "E BT BS S0 BT BS BW AW X timedOut")
  }

  @Test("a source that signals itself performs in the next pass, which comes without a sleep", .rule(.r64))
  func signalsItself() {
    let log = record { time, loop, log in
      let source = Box<RunLoop.Source?>(nil)
      source.value = loop.signalled {
        log.write("S0:\(source.value?.isSignalled ?? true)")
        if log.count(of: "S0:false") == 1 { source.value?.signal() }
      }
      loop.run(log)
      log.write("\(time.sleepCount)")
      source.value = nil
    }
    #expect(log == "E BT BS S0:false BT BS S0:false BT BS BW AW X timedOut 1")
  }

  @Test("a source that another one signals performs in the next pass", .rule(.r65), arguments: [-1, 0, 1])
  func signalledInPass(order: Int) {
    let log = record { _, loop, log in
      let second = RunLoop.Source(order: order) { log.write("b") }
      loop.add(second, forMode: .default)
      loop.signalled {
        log.write("a")
        second.signal()
      }
      loop.run(log)
    }
    #expect(log == "E BT BS a BT BS b BT BS BW AW X timedOut")
  }

  @Test("a source that an earlier one removes from the mode still performs", .rule(.r66))
  func removedInPass() {
    let log = record { _, loop, log in
      let second = RunLoop.Source(order: 1) { log.write("b") }
      loop.add(second, forMode: .default)
      second.signal()
      loop.signalled {
        log.write("a")
        loop.remove(second, forMode: .default)
      }
      loop.run(log)
    }
    #expect(log == "E BT BS a b BT BS BW AW X timedOut")
  }

  @Test("a source that an earlier one invalidates does not perform", .rule(.r66))
  func invalidatedInPass() {
    let log = record { _, loop, log in
      let second = RunLoop.Source(order: 1) { log.write("b") }
      loop.add(second, forMode: .default)
      second.signal()
      loop.signalled {
        log.write("a")
        second.invalidate()
      }
      loop.run(log)
    }
    #expect(log == "E BT BS a BT BS BW AW X timedOut")
  }

  @Test("a pass has handled a source even if the last of them did not perform", .rule(.r69, .m4))
  func handled() {
    let log = record { _, loop, log in
      let second = RunLoop.Source(order: 1) { log.write("b") }
      loop.add(second, forMode: .default)
      second.signal()
      loop.signalled {
        log.write("a")
        second.invalidate()
        loop.perform { log.write("B") }
      }
      loop.run(log, returnAfterSourceHandled: true)
    }
    #expect(log == "E BT BS a B X handledSource")
  }

  @Test("a source that a nested run has performed is not performed again", .rule(.r67))
  func performedByNestedRun() {
    let log = record(observing: nil) { _, loop, log in
      loop.signalled {
        log.write("a")
        loop.nest(log)
      }
      loop.signalled { log.write("b") }
      loop.run(log)
    }
    #expect(log == "a [ b timedOut ] timedOut")
  }

  @Test("a source that is signalled in its call-out performs again in a run nested there", .rule(.r68))
  func reenters() {
    let log = record(observing: nil) { _, loop, log in
      let source = Box<RunLoop.Source?>(nil)
      source.value = loop.signalled {
        log.write("S0")
        guard log.count(of: "S0") == 1 else { return }
        source.value?.signal()
        loop.nest(log)
      }
      loop.run(log)
      source.value = nil
    }
    #expect(log == "S0 [ S0 timedOut ] timedOut")
  }

  @Test("a source that is signalled before it is in a mode performs when it is", .rule(.r70))
  func signalledBefore() {
    let log = record { _, loop, log in
      let source = RunLoop.Source { log.write("S0") }
      source.signal()
      loop.add(source, forMode: .default)
      loop.run(log, for: .zero)
    }
    #expect(log == "E BT BS S0 X timedOut")
  }

  @Test("a signalled source that is removed before the pass does not perform, and keeps its signal", .rule(.r66, .r70))
  func removedBefore() {
    let log = record(observing: nil) { _, loop, log in
      loop.keepAlive()
      let source = loop.signalled { log.write("S0") }
      loop.remove(source, forMode: .default)
      loop.run(log, for: .zero)
      log.write("\(source.isSignalled)")
      loop.add(source, forMode: .default)
      loop.run(log, for: .zero)
    }
    #expect(log == "timedOut true S0 timedOut")
  }

  @Test("an invalid source ignores signals", .rule(.r70, .r74))
  func signalledInvalid() {
    let source = RunLoop.Source {}
    source.signal()
    source.invalidate()
    #expect(!source.isSignalled)
    source.signal()
    #expect(!source.isSignalled)
  }

  @Test("a source in several modes performs once, in the first that runs", .rule(.r71))
  func severalModes() {
    let log = record(observing: nil) { _, loop, log in
      let source = RunLoop.Source { log.write("S0") }
      for mode: RunLoop.Mode in ["a", "b"] { loop.add(source, forMode: mode) }
      source.signal()
      for mode: RunLoop.Mode in ["b", "a", "b"] { loop.run(log, mode: mode, for: .zero) }
    }
    #expect(log == "S0 timedOut timedOut timedOut")
  }

  @Test("a source in two loops performs once, in the one that gets it", .rule(.r71))
  func twoLoops() {
    let log = record(observing: nil) { _, loop, log in
      let source = loop.signalled { log.write(RunLoop.current == loop ? "first" : "second") }
      onVirtualTime { _, second in
        log.write("\(second.add(source, forMode: .default))")
        second.run(log, for: .zero)
        second.remove(source, forMode: .default)
      }
      loop.run(log, for: .zero)
      source.signal()
      loop.run(log, for: .zero)
    }
    #expect(log == "true second timedOut timedOut first timedOut")
  }

  @Test(
    "a source whose closure gets the source can signal and end it, and is released without being invalidated",
    .rule(.r64, .r89))
  func performing() {
    let log = record(observing: nil) { _, loop, log in
      let count = Counter()
      let source = RunLoop.Source(order: 3) { source in
        log.write("S\(source.order)")
        if count.add() == 1 { source.signal() } else { source.invalidate() }
      }
      loop.add(source, forMode: .default)
      source.signal()
      loop.run(log)
      // In no mode, yet valid: only the variable retains it.
      let kept = WeakBox({ [token = Token(log)] in RunLoop.Source { (_: RunLoop.Source) in token.touch() } }())
      log.write("\(kept.object == nil)")
    }
    #expect(log == "S3 S3 finished released true")
  }
}
