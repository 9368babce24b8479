// SPDX-License-Identifier: Apache-2.0

import Testing
import TestSupport

@testable import RunLoopCore

@Suite("When closures are released", .timeLimit(.minutes(20)))
struct ReleaseTests {
  // R53
  @Test("a block is released right after it ran, before the next one runs")
  func block() {
    let log = record(observing: nil) { _, loop, log in
      loop.perform(holding(log) { log.write("1") })
      loop.perform { log.write("2") }
      loop.run(log)
    }
    #expect(log == "1 released 2 timedOut")
  }

  // R53, R55
  @Test("a block for several modes is released right after it ran")
  func sharedBlock() {
    let log = record(observing: nil) { _, loop, log in
      loop.perform(inModes: ["a", .default], block: holding(log) { log.write("1") })
      loop.perform { log.write("2") }
      loop.run(log)
    }
    #expect(log == "1 released 2 timedOut")
  }

  // R74, M22
  @Test("a source's closures are released when it is invalidated")
  func source() {
    let log = record(observing: nil) { _, loop, log in
      let source = RunLoop.Source(perform: holding(log) {})
      loop.add(source, forMode: .default)
      source.invalidate()
      log.write("invalidated")
    }
    #expect(log == "released invalidated")
  }

  // R74, M22
  @Test("a source's closures are released when the call-out that invalidates it has returned")
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

  // R74, M22
  @Test("a source that another thread invalidates during its call-out is released when that has returned")
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

  // R73, R74, M22
  @Test("a source's closures outlive its cancel call-outs")
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

  // R89, M22
  @Test("an observer's handler is released when it is invalidated")
  func observer() {
    let log = record(observing: nil) { _, loop, log in
      let observer = holdingObserver(log) { _ in }
      loop.add(observer, forMode: .default)
      observer.invalidate()
      log.write("invalidated")
    }
    #expect(log == "released invalidated")
  }

  // R84, R89, M22
  @Test("the handler of an observer that does not repeat is released when it has returned")
  func observerOnce() {
    let log = record(observing: nil) { _, loop, log in
      loop.keepAlive()
      let observer = holdingObserver(log, repeats: false) { _ in log.write("returned") }
      loop.add(observer, forMode: .default)
      loop.run(log, for: .zero)
    }
    #expect(log == "returned released timedOut")
  }

  // R89, M22
  @Test("the handler of an observer that invalidates itself is released when it has returned")
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

  /// The closure with a probe in it, which says when the closure is released.
  private func holding(_ log: Log, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    let probe = Token(log)
    return {
      probe.touch()
      body()
    }
  }
}
