// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("When closures are released", .timeLimit(.minutes(20)))
struct ReleaseTests {
  @Test("a block is released right after it ran, before the next one runs", .rule(.r53))
  func block() {
    let log = record(observing: nil) { _, loop, log in
      loop.perform(holding(log) { log.write("1") })
      loop.perform { log.write("2") }
      loop.run(log)
    }
    #expect(log == "1 released 2 timedOut")
  }

  @Test("a block for several modes is released right after it ran", .rule(.r53, .r55))
  func sharedBlock() {
    let log = record(observing: nil) { _, loop, log in
      loop.perform(inModes: ["a", .default], block: holding(log) { log.write("1") })
      loop.perform { log.write("2") }
      loop.run(log)
    }
    #expect(log == "1 released 2 timedOut")
  }

  @Test("a source's closures are released when it is invalidated", .rule(.r74, .m22))
  func source() {
    let log = record(observing: nil) { _, loop, log in
      let source = RunLoop.Source(perform: holding(log) {})
      loop.add(source, forMode: .default)
      source.invalidate()
      log.write("invalidated")
    }
    #expect(log == "released invalidated")
  }

  @Test("a source's closures are released when the call-out that invalidates it has returned", .rule(.r74, .m22))
  func sourceInCallOut() {
    let log = record(observing: nil) { _, loop, log in
      let source = Box<RunLoop.Source?>(nil)
      source.value = loop.signalled(
        holding(log) {
          source.value?.invalidate()
          loop.perform { log.write("B") }
          log.write("returned")
        })
      loop.run(log)
    }
    #expect(log == "returned released B finished")
  }

  @Test(
    "a source that another thread invalidates during its call-out is released when that has returned", .rule(.r74, .m22)
  )
  func sourceFromAnotherThread() {
    let log = record(observing: nil) { _, loop, log in
      let source = Box<RunLoop.Source?>(nil)
      source.value = loop.signalled(
        holding(log) {
          onNewThread { source.value?.invalidate() }
          log.write("returned")
        })
      loop.run(log)
    }
    #expect(log == "returned released finished")
  }

  @Test("a source's closures outlive its cancel call-outs", .rule(.r73, .r74, .m22))
  func cancel() {
    let log = record(observing: nil) { _, loop, log in
      let held = Box<RunLoop.Source?>(nil)
      held.value = canceling(log)
      if let source = held.value { loop.add(source, forMode: .default) }
      held.value?.invalidate()
    }
    #expect(log == "cancelled released")
  }

  private func canceling(_ log: Log) -> RunLoop.Source {
    let probe = Token(log)
    return RunLoop.Source(
      cancel: { _, _ in
        log.write("cancelled")
        probe.touch()
      }, perform: {})
  }

  @Test("an observer's handler is released when it is invalidated", .rule(.r89, .m22))
  func observer() {
    let log = record(observing: nil) { _, loop, log in
      let observer = holdingObserver(log) { _ in }
      loop.add(observer, forMode: .default)
      observer.invalidate()
      log.write("invalidated")
    }
    #expect(log == "released invalidated")
  }

  @Test("the handler of an observer that does not repeat is released when it has returned", .rule(.r84, .r89, .m22))
  func observerOnce() {
    let log = record(observing: nil) { _, loop, log in
      loop.keepAlive()
      let observer = holdingObserver(log, repeats: false) { _ in log.write("returned") }
      loop.add(observer, forMode: .default)
      loop.run(log, for: .zero)
    }
    #expect(log == "returned released timedOut")
  }

  @Test("the handler of an observer that invalidates itself is released when it has returned", .rule(.r89, .m22))
  func observerInCallOut() {
    let log = record(observing: nil) { _, loop, log in
      loop.keepAlive()
      let observer = holdingObserver(log) { observer in
        observer.invalidate()
        log.write("returned")
      }
      loop.add(observer, forMode: .default)
      loop.run(log, for: .zero)
    }
    #expect(log == "returned released timedOut")
  }

  private func holdingObserver(
    _ log: Log, repeats: Bool = true, _ body: @escaping @Sendable (RunLoop.Observer) -> Void
  ) -> RunLoop.Observer {
    let probe = Token(log)
    return RunLoop.Observer(activities: .entry, repeats: repeats) { observer, _ in
      probe.touch()
      body(observer)
    }
  }

  /// Wraps the closure with a probe that logs the closure's release.
  private func holding(_ log: Log, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    let probe = Token(log)
    return {
      probe.touch()
      body()
    }
  }
}
