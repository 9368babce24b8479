// SPDX-License-Identifier: Apache-2.0

import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopCore
@testable import RunLoopTransactions

@Suite("A queue that a loop consumes", .timeLimit(.minutes(20)))
struct RunLoopQueueTests {
  /// Runs a loop with a queue of numbers that are logged, and returns the log.
  private func record(
    batch: Int = 1, budget: Duration? = nil, cost: Duration = .zero, unique: Bool = true,
    _ body: @escaping @Sendable (RunLoop, RunLoopQueue<Int>, Log) -> Void
  ) -> String {
    let log = Log()
    onVirtualTime { time, loop in
      let queue = RunLoopQueue<Int>(loop: loop, batch: batch, budget: budget, unique: unique) { number, isDrained in
        time.advance(by: cost)
        log.write(isDrained ? "\(number)!" : "\(number)")
      }
      loop.add(
        RunLoop.Observer(activities: [.beforeTimers, .exit], order: 1) { _, activity in log.write(activity.letter) },
        forMode: .default)
      loop.keepAlive()
      body(loop, queue, log)
    }
    return log.text
  }

  @Test("a turn consumes one batch, and the loop does not sleep while elements wait")
  func batches() {
    let log = record(batch: 2) { loop, queue, log in
      for number in 1...5 { queue.enqueue(number) }
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "BT 1 2 BT 3 4 BT 5! X")
  }

  @Test("by default a batch is one element, and sizes below one count as one", arguments: [1, 0, -3])
  func smallBatches(batch: Int) {
    let log = record(batch: batch) { loop, queue, log in
      for number in 1...3 { queue.enqueue(number) }
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "BT 1 BT 2 BT 3! X")
  }

  @Test("with a budget, a turn continues until it is used up, checking the clock after each batch")
  func budget() {
    let log = record(batch: 2, budget: .milliseconds(5), cost: .milliseconds(1)) { loop, queue, log in
      for number in 1...14 { queue.enqueue(number) }
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "BT 1 2 3 4 5 6 BT 7 8 9 10 11 12 BT 13 14! X")
  }

  @Test("a budget used up by one element still lets a turn consume a batch")
  func smallBudget() {
    let log = record(batch: 2, budget: .nanoseconds(1), cost: .milliseconds(1)) { loop, queue, log in
      for number in 1...4 { queue.enqueue(number) }
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "BT 1 2 BT 3 4! X")
  }

  @Test(
    "a budget of zero or less is one batch, and an infinite one is everything",
    arguments: [(0, "1 BT 2!"), (-1, "1 BT 2!")])
  func oddBudgets(seconds: Int, expected: String) {
    let log = record(budget: .seconds(seconds)) { loop, queue, log in
      for number in 1...2 { queue.enqueue(number) }
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "BT \(expected) X")
    let all = record(budget: .seconds(Int64.max)) { loop, queue, log in
      for number in 1...3 { queue.enqueue(number) }
      loop.run(mode: .default, for: 1)
    }
    #expect(all == "BT 1 2 3! X")
  }

  @Test("a waiting element is rejected, and accepted again once consumed")
  func unique() {
    let log = record(batch: 9) { loop, queue, log in
      #expect(queue.enqueue(1) && queue.enqueue(2) && !queue.enqueue(1) && queue.count == 2)
      loop.run(mode: .default, for: 0.001)
      #expect(queue.isEmpty && queue.enqueue(1))
      loop.run(mode: .default, for: 0.001)
    }
    #expect(log == "BT 1 2! X BT 1! X")
  }

  @Test("the elements of a queue need not be unique")
  func notUnique() {
    let log = record(batch: 9, unique: false) { loop, queue, log in
      #expect(queue.enqueue(1) && queue.enqueue(1))
      loop.run(mode: .default, for: 1)
    }
    #expect(log == "BT 1 1! X")
  }

  @Test("objects are compared by identity even if equal, and incomparable elements never match")
  func identity() {
    final class Equal: Hashable, Sendable {
      static func == (left: Equal, right: Equal) -> Bool { true }
      func hash(into hasher: inout Hasher) {}
    }
    struct Plain: Sendable {}
    onVirtualTime { _, loop in
      let objects = RunLoopQueue<Equal>(loop: loop) { _, _ in }
      let (one, other) = (Equal(), Equal())
      #expect(objects.enqueue(one) && objects.enqueue(other) && !objects.enqueue(one))
      let mixed = RunLoopQueue<any Sendable>(loop: loop) { _, _ in }
      #expect(mixed.enqueue(one) && mixed.enqueue(1) && !mixed.enqueue(one) && !mixed.enqueue(1) && mixed.enqueue("1"))
      let values = RunLoopQueue<Plain>(loop: loop) { _, _ in }
      #expect(values.enqueue(Plain()) && values.enqueue(Plain()))
    }
  }

  @Test("another thread's element wakes a sleeping loop, and timers run between batches")
  func wakes() {
    let log = Log()
    onVirtualTime { time, loop in
      let queue = RunLoopQueue<Int>(loop: loop) { number, _ in
        time.advance(by: .milliseconds(1))
        time.stamp(log, "\(number):")
      }
      time.at(.milliseconds(5)) { for number in 1...3 { queue.enqueue(number) } }
      loop.after(.milliseconds(6)) { _ in time.stamp(log, "T") }
      loop.keepAlive()
      loop.run(mode: .default, for: 1)
    }
    #expect(log.text == "1:6 T6 2:7 3:8")
  }

  @Test("elements added during a consumption follow, even those added by a later observer before the wait")
  func added() {
    let log = Log()
    onVirtualTime { time, loop in
      let itself = Box<RunLoopQueue<Int>?>(nil)
      let queue = RunLoopQueue<Int>(loop: loop, batch: 4) { number, isDrained in
        log.write(isDrained ? "\(number)!" : "\(number)")
        if number == 1 { itself.value?.enqueue(2) }
      }
      itself.value = queue
      queue.enqueue(1)
      loop.add(
        RunLoop.Observer(activities: .beforeWaiting, repeats: false, order: 5) { _, _ in queue.enqueue(3) },
        forMode: .default)
      loop.keepAlive()
      loop.run(mode: .default, for: 1)
      itself.value = nil
    }
    #expect(log.text == "1! 2! 3!")
  }

  @Test("a run nested in an element's consumption consumes no other")
  func nested() {
    let log = record { loop, queue, log in
      let runs = Counter()
      let nesting = RunLoopQueue<Int>(loop: loop, order: -1) { number, _ in
        log.write("n\(number)")
        if runs.add() == 1 {
          loop.run(mode: .default, for: 0.001)
          log.write("returned")
        }
      }
      nesting.enqueue(1)
      nesting.enqueue(2)
      loop.run(mode: .default, for: 1)
      withExtendedLifetime(nesting) {}
    }
    #expect(log == "BT n1 BT X returned BT n2 X")
  }

  @Test("remaining elements are released with the queue or the loop, which then accepts nothing")
  func end() {
    let log = Log()
    onVirtualTime { _, loop in
      let captured = Token(log, "closure")
      let queue = RunLoopQueue<Token>(loop: loop) { _, _ in captured.touch() }
      queue.enqueue(Token(log, "element"))
    }
    #expect(log.text == "element closure")
    let queue = onVirtualTime { _, loop in
      let queue = RunLoopQueue<Token>(loop: loop) { _, _ in }
      queue.enqueue(Token(log, "left"))
      return queue
    }
    #expect(log.text == "element closure left" && !queue.enqueue(Token(log, "rejected")) && queue.isEmpty)
    let late = RunLoopQueue<Int>(loop: onNewThread { RunLoop.current }) { _, _ in }
    #expect(!late.enqueue(1))
  }

  @Test("elements of four threads are consumed once each, in the order of each thread")
  func stress() throws {
    let thread = try ResidentThread(name: "consumes")
    let consumed = Box<[[Int]]>(Array(repeating: [], count: 4))
    let count = Counter()
    let queue = RunLoopQueue<Int>(
      loop: thread.runLoop, batch: 16, budget: .microseconds(200), unique: false
    ) { number, _ in
      consumed.update { $0[number / 10_000].append(number % 10_000) }
      count.add()
    }
    let threads = (0..<4).map { index in
      startThread { for number in 0..<5000 { queue.enqueue(index * 10_000 + number) } }
    }
    for thread in threads { thread.result() }
    waitUntil { count.value == 20_000 }
    #expect(consumed.value.allSatisfy { $0 == Array(0..<5000) })
    thread.stop()
    try thread.join()
  }
}

@Suite("The elements of a queue", .timeLimit(.minutes(20)))
struct WaitingElementsTests {
  private struct Same: Hashable, Sendable {
    let number: Int
    func hash(into hasher: inout Hasher) {}
  }

  @Test("elements leave the queue in the order of arrival, however they arrive and leave")
  func order() {
    var elements = WaitingElements<Int>()
    var random = SplitMix64(seed: 1)
    var (added, taken) = (0, 0)
    for _ in 0..<10_000 {
      if random.below(5) < 2, let element = elements.takeFirst() {
        #expect(element == taken)
        taken += 1
      } else {
        elements.append(added, nil)
        added += 1
      }
      #expect(elements.count == added - taken)
    }
    while let element = elements.takeFirst() {
      #expect(element == taken)
      taken += 1
    }
    #expect(taken == added && elements.count == 0)
  }

  @Test("keys with equal hash values are distinguished, and removed with their elements")
  func collisions() throws {
    var elements = WaitingElements<Same>()
    let keys = try (0..<3).map { try #require(ElementKey(Same(number: $0))) }
    for number in 0..<3 { elements.append(Same(number: number), keys[number]) }
    for number in 0..<3 {
      #expect(elements.candidates(for: keys[0]).count == 3 - number)
      #expect(elements.candidates(for: keys[0]).contains { $0.matches(keys[2]) })
      #expect(elements.takeFirst() == Same(number: number))
      #expect(!elements.candidates(for: keys[0]).contains { $0.matches(keys[number]) })
    }
  }

  @Test("an equality that uses the queue does not block, and an equal element is rejected")
  func equalityThatUsesTheQueue() {
    final class Asked: Sendable {
      let queue = Box<RunLoopQueue<Asking>?>(nil)
    }
    struct Asking: Hashable, Sendable {
      let asked: Asked
      static func == (left: Asking, right: Asking) -> Bool { left.asked.queue.value?.count != nil }
      func hash(into hasher: inout Hasher) { hasher.combine(asked.queue.value?.isEmpty == nil) }
    }
    onVirtualTime { _, loop in
      let asked = Asked()
      let queue = RunLoopQueue<Asking>(loop: loop) { _, _ in }
      asked.queue.value = queue
      #expect(queue.enqueue(Asking(asked: asked)) && !queue.enqueue(Asking(asked: asked)))
      asked.queue.value = nil
    }
  }
}
