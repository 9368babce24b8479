// SPDX-License-Identifier: Apache-2.0

import Synchronization
import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

// Real threads on a real loop: four of them work on it while it runs and sleeps. Only the loop's thread touches the
// counts, without a lock, so the thread sanitizer would detect a call-out on another thread.

@Suite("Stress", .timeLimit(.minutes(20)))
struct StressTests {
  @Test(
    "of blocks posted by four threads each runs once, in the order of its thread", .rule(.r53, .r54, .r120, .m3))
  func blocks() {
    let count = 1500
    let modes: [[RunLoop.Mode]] = [[.default], [.common], [.default, "A"], ["A", "B", .common]]
    let tally = hammer { loop, tally, thread in
      for number in 0..<count {
        loop.perform(inModes: modes[(number + thread) % modes.count]) { tally.note(thread, number) }
      }
    }
    #expect(tally.counts == Array(repeating: count, count: 4))
    #expect(tally.isInOrder)
  }

  @Test("of signals given by four threads, the last one of each source is performed", .rule(.r63, .r70, .r120, .m2))
  func signals() {
    let count = 1500
    let tally = onNewThread {
      let loop = RunLoop.current
      let tally = Tally()
      let last = (0..<4).map { _ in Box(0) }
      let sources = (0..<4).map { thread in
        RunLoop.Source {
          tally.note(thread, last[thread].value)
          if tally.latest == Array(repeating: count, count: 4) { loop.stop() }
        }
      }
      for source in sources { loop.add(source, forMode: .common) }
      let threads = (0..<4).map { thread in
        startThread {
          for number in 1...count {
            last[thread].value = number
            sources[thread].signal()
            loop.wakeUp()
          }
        }
      }
      loop.runUntilStopped()
      for thread in threads { thread.result() }
      return tally
    }
    #expect(tally.latest == Array(repeating: count, count: 4))
    #expect(tally.counts.allSatisfy { (1...count).contains($0) })
  }

  @Test("timers that four threads move fire after their last move", .rule(.r50, .r51, .r99, .r120, .m8))
  func timers() {
    let tally = onNewThread {
      let loop = RunLoop.current
      let tally = Tally()
      let isLast = (0..<4).map { _ in Box(0) }
      let timers = (0..<4).map { thread in
        loop.every(.seconds(3600), tolerance: .seconds(1), mode: thread % 2 == 0 ? .default : .common) { _ in
          tally.note(thread, isLast[thread].value)
          if tally.latest == [1, 1, 1, 1] { loop.stop() }
        }
      }
      let threads = (0..<4).map { thread in
        startThread {
          var random = SplitMix64(seed: UInt64(thread))
          for _ in 0..<1000 {
            timers[thread].deadline = SystemWaiter.shared.now.instant + .microseconds(random.below(60) - 10)
            if random.oneIn(5) { timers[thread].tolerance = Double(random.below(40)) / 1e6 }
          }
          isLast[thread].value = 1
          timers[thread].tolerance = 0
          timers[thread].deadline = SystemWaiter.shared.now.instant
        }
      }
      loop.runUntilStopped()
      for thread in threads { thread.result() }
      return tally
    }
    #expect(tally.latest == [1, 1, 1, 1])
  }

  @Test("items added, removed and invalidated by four threads leave nothing behind", .rule(.r72, .r73, .r99c, .r120))
  func items() {
    let (scheduled, cancelled) = (Counter(), Counter())
    let leftOver = onNewThread {
      let loop = RunLoop.current
      loop.keepAlive()
      withFourThreads(on: loop) { thread in
        var random = SplitMix64(seed: UInt64(100 + thread))
        let modes: [RunLoop.Mode] = [.default, .common, "A"]
        for _ in 0..<40 {
          let source = RunLoop.Source(
            schedule: { _, _ in scheduled.add() }, cancel: { _, _ in cancelled.add() }, perform: {})
          let timer = Timer(timeInterval: 0.00005, repeats: true) { _ in }
          let once = Timer(timeInterval: 0.00002, repeats: false) { _ in }
          let observer = RunLoop.Observer(activities: .all, repeats: random.oneIn(2)) { _, _ in }
          let port = Port { _, _ in }
          for _ in 0..<20 {
            let mode = modes[random.below(3)]
            switch random.below(12) {
            case 0: loop.add(source, forMode: mode)
            case 1: loop.add(timer, forMode: mode)
            case 2: loop.add(observer, forMode: mode)
            case 3: loop.add(port, forMode: mode)
            case 4: loop.remove(source, forMode: mode)
            case 5: loop.remove(timer, forMode: mode)
            case 6: loop.remove(observer, forMode: mode)
            case 7: loop.remove(port, forMode: mode)
            case 8: source.signal()
            case 9: try? port.send(.init())
            case 10: loop.add(once, forMode: mode)
            default: timer.tolerance = random.oneIn(2) ? 0 : 0.00001
            }
          }
          source.invalidate()
          timer.invalidate()
          once.invalidate()
          observer.invalidate()
          port.invalidate()
        }
      }
      return loop.table.withLock { table in
        table.modes.values.map { mode in
          mode.timers.checkInvariants()
          return mode.itemCount.load(ordering: .relaxed) + mode.observers.count + mode.timerCount
        }.reduce(table.commonItems.count, +)
      }
    }
    // The item that keeps the loop alive.
    #expect(leftOver == 1)
    #expect(scheduled.value == cancelled.value)
    #expect(scheduled.value > 0)
  }

  @Test(
    "descriptors that four threads remove while the loop serves them are called before, and not retained after",
    .rule(.r50, .r73, .r120, .m19))
  func descriptors() throws {
    let pipe = try RawPipe()
    pipe.write()
    let (nested, isLeft) = onNewThread {
      let loop = RunLoop.current
      loop.keepAlive()
      let nested = Counter()
      withFourThreads(on: loop) { thread in
        for number in 0..<100 {
          let (called, released) = (Latch(), Latch())
          var source: RunLoop.DescriptorSource? = loop.watch(pipe.reading) { [last = OpensAtItsEnd(released)] _, _ in
            let isFirst = !called.isOpen
            called.open()
            if isFirst && (number + thread) % 4 == 0 {
              // It sets aside the work that the enclosing run would call.
              nested.add()
              loop.run(mode: .default, for: .zero)
            }
            #expect(!last.latch.isOpen)
          }
          called.wait()
          source?.invalidate()
          source = nil
          released.wait()
        }
      }
      return (nested.value, loop.pollSet()?.isEmpty == false)
    }
    #expect(nested == 100)
    #expect(!isLeft)
  }

  @Test("messages of four threads through a narrow port arrive once, in the order of each thread", .rule(.r120))
  func messages() {
    let count = 300
    let tally = onNewThread {
      let loop = RunLoop.current
      let tally = Tally()
      let port = Port(queueLimit: 8) { _, message in
        tally.note(Int(message.id) / count, Int(message.id) % count)
        if tally.counts.reduce(0, +) == 4 * count { loop.stop() }
      }
      loop.add(port, forMode: .default)
      let deadline = SystemWaiter.shared.now.instant + .seconds(3600)
      let threads = (0..<4).map { thread in
        startThread {
          for number in 0..<count { try? port.send(.init(id: UInt32(thread * count + number)), deadline: deadline) }
        }
      }
      loop.runUntilStopped()
      for thread in threads { thread.result() }
      return tally
    }
    #expect(tally.counts == Array(repeating: count, count: 4))
    #expect(tally.isInOrder)
  }

  /// An event that ends a loop's sleep.
  enum Cause: CaseIterable {
    case block, signal, message, addedTimer, movedTimer, addedReadyPort
  }

  @Test(
    "a loop that falls asleep between any two of them hears every call", .rule(.r45, .r50, .r51, .m2, .m3),
    arguments: Cause.allCases)
  func everyCall(cause: Cause) {
    let rounds = 300
    let answered = onNewThread {
      let loop = RunLoop.current
      let answered = Turn()
      loop.keepAlive()
      let source = RunLoop.Source { answered.advance() }
      loop.add(source, forMode: .default)
      let port = Port { _, _ in answered.advance() }
      loop.add(port, forMode: .default)
      let timer = loop.every(.seconds(3600)) { _ in answered.advance() }
      let caller = startThread {
        for round in 1...rounds {
          switch cause {
          case .block: loop.perform { answered.advance() }
          case .signal:
            source.signal()
            loop.wakeUp()
          case .message: try? port.send(.init())
          case .addedTimer:
            loop.add(Timer(timeInterval: 0, repeats: false) { _ in answered.advance() }, forMode: .default)
          case .movedTimer: timer.deadline = SystemWaiter.shared.now.instant
          case .addedReadyPort:
            let port = Port { port, _ in
              port.invalidate()
              answered.advance()
            }
            try? port.send(.init())
            loop.add(port, forMode: .default)
          }
          answered.wait(for: round)
        }
        loop.perform { loop.stop() }
      }
      loop.runUntilStopped()
      caller.result()
      return answered.value
    }
    #expect(answered == rounds)
  }

  @Test(
    "a stop of its mode ends a loop whose last item leaves as it begins to run or sleeps, every time",
    .rule(.r28c, .r42, .m16))
  func lastItem() {
    let results = onNewThread {
      let loop = RunLoop.current
      let turn = Turn()
      let item = Box<RunLoop.Source?>(nil)
      let remover = startThread {
        for round in 1...200 {
          turn.wait(for: round)
          item.value?.invalidate()
          loop.stop(mode: .default)
        }
      }
      let results = (1...200).map { _ in
        item.value = loop.keepAlive()
        turn.advance()
        return loop.runUntilStopped()
      }
      remover.result()
      return results
    }
    #expect(results.count == 200 && results.allSatisfy { $0 == .finished || $0 == .stopped })
  }

  @Test("two loops that post to each other pass a ball back and forth", .rule(.r113, .m3))
  func pingPong() {
    let hops = onNewThread {
      let first = RunLoop.current
      first.keepAlive()
      let second = Box<RunLoop?>(nil)
      let isReady = Turn()
      let other = startThread {
        second.value = RunLoop.current
        RunLoop.current.keepAlive()
        isReady.advance()
        RunLoop.current.runUntilStopped()
      }
      isReady.wait(for: 1)
      let count = Counter()
      if let second = second.value { hop(first, second, count) }
      first.runUntilStopped()
      other.result()
      return count.value
    }
    #expect(hops == 1000)
  }

  private func hop(_ here: RunLoop, _ there: RunLoop, _ count: Counter) {
    there.perform {
      count.add()
      guard count.value < 1000 else {
        here.stopForGood()
        there.stopForGood()
        return
      }
      hop(there, here, count)
    }
  }

  @Test("any thread can query a loop while it runs", .rule(.r120))
  func asking() {
    let tally = hammer { loop, tally, thread in
      let timer = Timer(timeInterval: 0.0001, repeats: true) { _ in }
      loop.add(timer, forMode: .common)
      for number in 0..<100 {
        loop.perform { tally.note(thread, number) }
        _ = loop.isWaiting || loop.contains(timer, forMode: .default) || loop.contains(timer, forMode: .common)
        _ = (loop.currentMode, loop.modes, loop.nextDeadline(forMode: .default), loop.statistics)
        _ = (timer.deadline, timer.tolerance, timer.isValid)
        if number % 10 == 0 { precondition(loop.debugDescription.contains("kCFRunLoopDefaultMode")) }
      }
      timer.invalidate()
    }
    #expect(tally.counts == [100, 100, 100, 100])
  }

  /// Runs a new loop while four threads work on it, and returns the counts of its call-outs.
  private func hammer(_ work: @escaping @Sendable (RunLoop, Tally, Int) -> Void) -> Tally {
    onNewThread {
      let loop = RunLoop.current
      let tally = Tally()
      loop.keepAlive()
      withFourThreads(on: loop) { thread in work(loop, tally, thread) }
      return tally
    }
  }
}

/// Runs the calling thread's loop while four threads work on it; when they have finished, a last block stops it.
private func withFourThreads(on loop: RunLoop, _ work: @escaping @Sendable (Int) -> Void) {
  let threads = (0..<4).map { thread in startThread { work(thread) } }
  let last = startThread {
    for thread in threads { thread.result() }
    loop.perform { loop.stop() }
  }
  loop.runUntilStopped()
  last.result()
}

private final class OpensAtItsEnd: Sendable {
  let latch: Latch

  init(_ latch: Latch) { self.latch = latch }

  deinit { latch.open() }
}

private final class Tally: @unchecked Sendable {
  // Sendable: used by the loop's thread while it runs, and read afterwards.
  private(set) var counts = [0, 0, 0, 0]
  private(set) var latest = [-1, -1, -1, -1]
  private(set) var isInOrder = true

  func note(_ thread: Int, _ number: Int) {
    if latest[thread] + 1 != number { isInOrder = false }
    latest[thread] = number
    counts[thread] += 1
  }
}

private final class Turn: Sendable {
  private let count = Atomic<UInt32>(0)

  var value: Int { Int(count.load(ordering: .acquiring)) }

  func advance() {
    count.wrappingAdd(1, ordering: .acquiringAndReleasing)
    count.futexWake(.max)
  }

  func wait(for value: Int) {
    while true {
      let now = count.load(ordering: .acquiring)
      if Int(now) >= value { return }
      count.futexWait(while: now)
    }
  }
}
