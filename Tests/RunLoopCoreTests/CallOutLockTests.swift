// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("No call-out runs under a lock", .timeLimit(.minutes(20)))
struct CallOutLockTests {
  /// Uses a loop and an item from another thread and waits for it.
  ///
  /// Blocks forever if the caller holds one of their locks.
  private func use(_ loop: RunLoop, _ source: RunLoop.Source? = nil) {
    onNewThread {
      let added = source ?? RunLoop.Source {}
      added.signal()
      loop.add(added, forMode: "probe")
      loop.remove(added, forMode: "probe")
      loop.perform(inModes: ["probe"]) {}
      loop.stop(mode: "probe")
      loop.wakeUp()
    }
  }

  @Test("the call-outs of a run", .rule(.r19, .r52, .m10))
  func run() {
    let log = record(observing: nil) { _, loop, log in
      let write = { @Sendable (entry: String) in
        use(loop)
        log.write(entry)
      }
      loop.add(RunLoop.Observer(activities: .all) { _, activity in write(activity.letter) }, forMode: .default)
      loop.perform { write("B") }
      loop.signalled { write("S0") }
      loop.after(.zero) { _ in write("T") }
      loop.port(messages: 1) { write("S1") }
      loop.run(log, returnAfterSourceHandled: true)
      loop.run(log, returnAfterSourceHandled: true)
    }
    #expect(log == "E BT BS B S0 T X handledSource E BT BS BW AW S1 X handledSource")
  }

  @Test("the schedule call-outs of a source", .rule(.r19, .r72, .m10), arguments: [RunLoop.Mode.default, .common])
  func schedule(mode: RunLoop.Mode) {
    let log = record(observing: nil) { _, loop, log in
      let source = Box<RunLoop.Source?>(nil)
      let made = RunLoop.Source(
        schedule: { loop, mode in
          guard mode != "probe" else { return }
          use(loop, source.value)
          log.write("+")
        }, perform: {})
      source.value = made
      loop.add(made, forMode: mode)
      try? loop.addCommonMode("a")
      source.value = nil
    }
    #expect(log == (mode == .common ? "+ +" : "+"))
  }

  @Test("the cancel call-outs of a source", .rule(.r19, .r73, .m10))
  func cancel() {
    let log = record(observing: nil) { _, loop, log in
      let source = Box<RunLoop.Source?>(nil)
      let made = RunLoop.Source(
        cancel: { loop, mode in
          guard mode != "probe" else { return }
          use(loop, source.value)
          log.write("-")
        }, perform: {})
      source.value = made
      for mode: RunLoop.Mode in [.default, .common] {
        loop.add(made, forMode: mode)
        loop.remove(made, forMode: mode)
      }
      loop.add(made, forMode: .default)
      made.invalidate()
      source.value = nil
    }
    #expect(log == "- - -")
  }

  @Test("the cancel call-out of a source whose loop ends with its thread", .rule(.r19, .r115, .m10))
  func cancelAtThreadEnd() {
    let log = Log()
    onVirtualTime { _, loop in
      let source = RunLoop.Source(
        cancel: { loop, _ in
          use(loop)
          log.write("-")
        }, perform: {})
      loop.add(source, forMode: .default)
    }
    #expect(log.text == "-")
  }

  @Test("the release of what closures hold", .rule(.r19, .m10, .m22))
  func release() {
    let log = record(observing: nil) { _, loop, log in
      let hold = { @Sendable (name: String) -> @Sendable () -> Void in
        let probe = Token {
          use(loop)
          log.write(name)
        }
        return { probe.touch() }
      }
      loop.keepAlive()
      loop.signalled(hold("source")).invalidate()
      makeObserver(hold("observer"), in: loop).invalidate()
      loop.perform(inModes: [], block: hold("refused"))
      loop.perform(hold("block"))
      loop.run(log, for: .zero)
      loop.perform(hold("dropped"))
      RunLoop.detachCurrent()
    }
    #expect(log == "source observer refused block timedOut dropped")
  }

  private func makeObserver(_ body: @escaping @Sendable () -> Void, in loop: RunLoop) -> RunLoop.Observer {
    let observer = RunLoop.Observer(activities: .entry) { _, _ in body() }
    loop.add(observer, forMode: .common)
    return observer
  }
}
