// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import RunLoopTransactions

@Suite("Work that waits for a worker", .timeLimit(.minutes(20)))
struct WorkQueueTests {
  private func drain(_ queue: inout WorkQueue<String>) -> String {
    var taken: [String] = []
    while let (item, piece) = queue.takeFirst() { taken.append("\(item)\(piece)") }
    return taken.joined(separator: " ")
  }

  @Test("work is taken by priority and then in the order of arrival, one part at a time")
  func order() {
    var queue = WorkQueue<String>()
    queue.append("a", priority: 0, pieces: 2)
    queue.append("b", priority: 5, pieces: 1)
    queue.append("c", priority: 0, pieces: 1)
    queue.append("d", priority: -1, pieces: 1)
    queue.append("e", priority: 5, pieces: 2)
    #expect(queue.count == 7)
    #expect(drain(&queue) == "b0 e0 e1 a0 a1 c0 d0" && queue.count == 0)
  }

  @Test("an item without work does not wait, and items added meanwhile take their places")
  func meanwhile() {
    var queue = WorkQueue<String>()
    queue.append("none", priority: 9, pieces: 0)
    #expect(queue.takeFirst() == nil && queue.count == 0)
    queue.append("a", priority: 0, pieces: 2)
    #expect(queue.takeFirst()?.piece == 0)
    queue.append("b", priority: 1, pieces: 1)
    #expect(drain(&queue) == "b0 a1")
    queue.append("c", priority: .max, pieces: 1)
    queue.append("d", priority: .min, pieces: 1)
    #expect(queue.takeAll() == ["c", "d"] && queue.count == 0 && drain(&queue) == "")
  }

  @Test("the work queue agrees with a stable sort")
  func model() {
    var random = SplitMix64(seed: 7)
    var queue = WorkQueue<Int>()
    var model: [(priority: Int, item: Int)] = []
    var next = 0
    for _ in 0..<20_000 {
      if random.below(3) == 0, !model.isEmpty {
        let first =
          model.indices.max {
            model[$0].priority < model[$1].priority || (model[$0].priority == model[$1].priority && $0 > $1)
          } ?? 0
        #expect(queue.takeFirst()?.item == model.remove(at: first).item)
      } else if model.count < 50 {
        let priority = random.below(7) - 3
        queue.append(next, priority: priority, pieces: 1)
        model.append((priority, next))
        next += 1
      }
      #expect(queue.count == model.count)
    }
  }
}
