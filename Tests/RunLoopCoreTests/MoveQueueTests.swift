// SPDX-License-Identifier: Apache-2.0

import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The queue that moves its elements")
struct MoveQueueTests {
  @Test("a queue agrees with an array under random changes, and keeps all elements", arguments: 1...6)
  func model(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let counter = Counter()
    do {
      var queue = MoveQueue<Element>()
      var other = MoveQueue<Element>()
      var model: [Int] = []
      var otherModel: [Int] = []
      let burst = random.oneIn(2) ? 3 : 60
      for step in 0..<600 {
        switch random.below(7) {
        case 0, 1:
          for _ in 0..<random.below(burst) {
            queue.append(Element(step, counter))
            model.append(step)
          }
        case 2, 3:
          for _ in 0..<min(random.below(burst), model.count) {
            #expect(queue.takeFirst().number == model.removeFirst())
          }
        case 4 where !model.isEmpty:
          #expect(queue.takeLast().number == model.removeLast())
        case 5:
          let offset = random.below(model.count + 1)
          queue.moveSuffix(from: offset, to: &other)
          otherModel += model[offset...]
          model.removeSubrange(offset...)
          if random.oneIn(2) {
            swap(&queue, &other)
            swap(&model, &otherModel)
          }
        case 6:
          queue.trim(to: random.below(100))
        default: break
        }
        check(queue, model)
        check(other, otherModel)
        #expect(counter.alive == model.count + otherModel.count)
      }
    }
    // The queues have released the elements that they still contained.
    #expect(counter.alive == 0)
  }

  private func check(_ queue: borrowing MoveQueue<Element>, _ model: [Int]) {
    queue.checkInvariants()
    let (count, isEmpty) = (queue.count, queue.isEmpty)
    #expect(count == model.count && isEmpty == model.isEmpty)
    for (offset, number) in model.enumerated() {
      let seen = queue.withElement(at: offset) { $0.number }
      #expect(seen == number)
    }
  }

  @Test("an element is released when it is taken, not when its place is used again")
  func letGo() {
    let counter = Counter()
    var queue = MoveQueue<Element>()
    for number in 0..<5 { queue.append(Element(number, counter)) }
    _ = queue.takeFirst()
    #expect(counter.alive == 4)
    _ = queue.takeLast()
    #expect(counter.alive == 3)
  }

  @Test("a queue that is filled and emptied forever does not grow")
  func noGrowth() {
    var queue = MoveQueue<Int>()
    for number in 0..<10 { queue.append(number) }
    for number in 10..<10_000 {
      queue.append(number)
      _ = queue.takeFirst()
    }
    let capacity = queue.capacity
    #expect(capacity <= 64)
  }

  @Test("a queue that is emptied from its end starts over, also when its memory was released")
  func emptiedFromTheEnd() {
    var queue = MoveQueue<Int>()
    for number in 0..<100 { queue.append(number) }
    _ = queue.takeFirst()
    while !queue.isEmpty { _ = queue.takeLast() }
    queue.checkInvariants()
    queue.trim(to: 10)
    queue.append(7)
    let last = queue.takeLast()
    #expect(last == 7)
  }

  @Test("an empty queue releases the memory beyond the limit, and a queue with elements releases none")
  func trim() {
    var queue = MoveQueue<Int>()
    for number in 0..<100 { queue.append(number) }
    let grown = queue.capacity
    queue.trim(to: 10)
    let whileFull = queue.capacity
    while !queue.isEmpty { _ = queue.takeFirst() }
    queue.trim(to: grown)
    let withinLimit = queue.capacity
    queue.trim(to: 10)
    let after = queue.capacity
    #expect([whileFull, withinLimit, after] == [grown, grown, 0])
    queue.append(1)
    let first = queue.takeFirst()
    #expect(first == 1)
  }
}

private final class Counter {
  var alive = 0
}

private final class Element {
  let number: Int
  private let counter: Counter

  init(_ number: Int, _ counter: Counter) {
    self.number = number
    self.counter = counter
    counter.alive += 1
  }

  deinit { counter.alive -= 1 }
}
