// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopTransactions

@Suite("A queue that is taken from the front")
struct TakeQueueTests {
  @Test("elements leave in the order of arrival, the first can be changed, and the rest is taken at once")
  func order() {
    var queue = TakeQueue<Int>()
    #expect(queue.takeFirst() == nil && queue.first == nil)
    for element in 1...200 { queue.append(element) }
    #expect((1...100).allSatisfy { queue.takeFirst() == $0 })
    queue.first? += 1000
    #expect(queue.takeFirst() == 1101 && queue.count == 99)
    #expect(queue.takeAll() == Array(102...200))
    #expect(queue.isEmpty && queue.takeFirst() == nil)
  }

  @Test("a queue that never empties keeps memory only for waiting elements")
  func room() {
    var queue = TakeQueue<Int>()
    queue.append(0)
    for element in 1...10_000 {
      queue.append(element)
      #expect(queue.takeFirst() == element - 1)
    }
    #expect(queue.count == 1 && queue.placeCount < 200)
  }
}
