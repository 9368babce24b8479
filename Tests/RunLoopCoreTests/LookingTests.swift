// SPDX-License-Identifier: Apache-2.0

import Synchronization
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("A loop that looks before it sleeps", .timeLimit(.minutes(20)))
struct LookingTests {
  /// Spins for 50 microseconds in the next wait, on any machine.
  static let eager: Looker = {
    var policy = LookPolicy()
    for _ in 0..<8 { policy.noteSleep(idle: 0, latency: 100_000, limit: 50_000) }
    return Looker(policy, .free)
  }()

  /// Runs a loop that spins in each of its waits, until it is stopped.
  private static func startEagerLoop(with pipe: RawPipe? = nil, _ log: @escaping @Sendable () -> Void = {}) -> (
    loop: RunLoop, thread: StartedThread<Int>
  ) {
    let loop = Box<RunLoop?>(nil)
    let latch = Latch()
    let thread = startThread {
      let own = RunLoop.current
      own.keepAlive()
      if let pipe {
        let source = RunLoop.DescriptorSource(descriptor: pipe.reading, events: .readable) { _, _ in
          _ = pipe.read()
          log()
        }
        do { try own.add(source, forMode: .default) } catch { Issue.record(error) }
      }
      own.add(
        RunLoop.Observer(activities: .beforeWaiting) { _, _ in own.looker = LookingTests.eager }, forMode: .default)
      loop.value = own
      own.perform { latch.open() }
      own.runUntilStopped()
      return own.statistics.lookCount
    }
    latch.wait()
    return (loop.value.unsafelyUnwrapped, thread)
  }

  @Test("two loops that post to each other and look lose nothing", .rule(.r33, .r44, .r45, .m2))
  func roundTrips() {
    let (here, hereThread) = LookingTests.startEagerLoop()
    let (there, thereThread) = LookingTests.startEagerLoop()
    let over = Latch()
    let left = Counter()
    @Sendable func hit(_ count: Int) {
      there.perform {
        here.perform {
          left.add()
          if count > 1 { hit(count - 1) } else { over.open() }
        }
      }
    }
    here.perform { hit(2000) }
    over.wait()
    #expect(left.value == 2000)
    here.stop()
    there.stop()
    #expect(hereThread.result() > 0)
    #expect(thereThread.result() > 0)
  }

  @Test("wake-ups, timers that are moved, signals and stops reach a loop that looks", .rule(.r44, .r45, .r46, .m2))
  func everything() {
    let (loop, thread) = LookingTests.startEagerLoop()
    let performed = Counter()
    let fired = Counter()
    let source = RunLoop.Source { performed.add() }
    loop.add(source, forMode: .default)
    let timer = Timer(deadline: loop.instant(after: .seconds(3600)), interval: .seconds(3600)) { _ in fired.add() }
    loop.add(timer, forMode: .default)
    for turn in 1...300 {
      source.signal()
      loop.wakeUp()
      waitUntil { performed.value == turn }
      timer.deadline = loop.now
      waitUntil { fired.value == turn }
    }
    loop.stop()
    #expect(thread.result() > 0)
  }

  @Test("a spinning loop counts as waiting, and sleeps after an unsuccessful spin", .rule(.r33))
  func isWaiting() {
    let (loop, thread) = LookingTests.startEagerLoop()
    waitUntil { loop.isWaiting && loop.statistics.lookCount > 0 }
    waitUntil { System.isAsleep(thread: loop.threadID) }
    #expect(loop.isWaiting)
    loop.stop()
    #expect(thread.result() > 0)
  }

  @Test("a descriptor that becomes ready reaches a loop that spins or that sleeps afterwards", .rule(.m6))
  func descriptors() throws {
    let pipe = try RawPipe()
    let reads = Counter()
    let (loop, thread) = LookingTests.startEagerLoop(with: pipe) { reads.add() }
    for turn in 1...500 {
      pipe.write()
      waitUntil { reads.value == turn }
    }
    loop.stop()
    #expect(thread.result() > 0)
  }

  @Test("a loop on virtual time never spins")
  func virtual() {
    onVirtualTime { _, loop in
      loop.looker = LookingTests.eager
      loop.keepAlive()
      loop.run(mode: .default, for: .seconds(10))
      #expect(loop.statistics.lookCount == 0)
    }
  }

  @Test("of many threads waiting for one word, each is released, whether it spins or sleeps")
  func awaitedWord() {
    final class Shared: Sendable { let word = AwaitedWord(0) }
    for turn in 0..<200 {
      let shared = Shared()
      let waiters = (0..<4).map { index in
        startThread {
          var looker = (index + turn).isMultiple(of: 2) ? LookingTests.eager : Looker()
          while shared.word.value != 7 { shared.word.wait(until: .never, by: &looker) { $0 == 7 } }
        }
      }
      // A change other than the last one wakes no thread, and none returns.
      let (first, second) = (shared.word.exchange(0, for: 1), shared.word.exchange(0, for: 2))
      #expect(first && !second)
      shared.word.finish(7)
      for waiter in waiters { waiter.result() }
    }
  }

  @Test("a wait for a word ends at its deadline")
  func awaitedDeadline() {
    for looker in [LookingTests.eager, Looker()] {
      let word = AwaitedWord(0)
      var looker = looker
      let deadline = Tick.monotonicNow + 2_000_000
      while Tick.monotonicNow < deadline { word.wait(until: deadline, by: &looker) { $0 == 1 } }
      let value = word.value
      #expect(value == 0)
    }
  }
}
