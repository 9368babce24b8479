// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopSockets

@Suite("How many datagrams a service takes", .timeLimit(.minutes(20)))
struct DatagramBatchTests {
  /// Serves a socket at which so many datagrams lie before each service, beside what was left, and counts the receives
  /// for nothing and what is left.
  private func serve(_ batch: inout DatagramBatch, _ arriving: Int, times: Int) -> (inVain: Int, left: Int) {
    var (inVain, left) = (0, 0)
    for _ in 0..<times {
      left += arriving
      let limit = batch.limit
      let taken = min(limit, left)
      left -= taken
      let isEmpty = taken < limit
      if isEmpty { inVain += 1 }
      batch.noteService(count: taken, isEmpty: isEmpty)
    }
    return (inVain, left)
  }

  @Test("where as many arrive each time, few receives are for nothing, and nothing is left", arguments: 1...15)
  func steady(count: Int) {
    var batch = DatagramBatch()
    let (inVain, left) = serve(&batch, count, times: 1000)
    #expect(inVain < 70 && left == 0 && batch.expected == count)
  }

  @Test("where more arrive than before, the services take more before long, and then the most that there may be")
  func growing() {
    var batch = DatagramBatch()
    _ = serve(&batch, 1, times: 1000)
    let (_, left) = serve(&batch, 4, times: DatagramBatch.mostTrusted + 10)
    #expect(left == 0)
    _ = serve(&batch, 100, times: DatagramBatch.mostTrusted + 1)
    #expect(batch.limit == DatagramBatch.most)
    let (inVain, _) = serve(&batch, 100, times: 1000)
    #expect(inVain == 0 && batch.limit == DatagramBatch.most)
  }

  @Test("where fewer arrive than before, the next service expects as few")
  func shrinking() {
    var batch = DatagramBatch()
    _ = serve(&batch, 8, times: 1000)
    #expect(batch.expected == 8)
    _ = serve(&batch, 2, times: 1)
    #expect(batch.expected == 2)
  }

  @Test("a service that finds nothing expects one")
  func nothing() {
    var batch = DatagramBatch()
    batch.noteService(count: 0, isEmpty: true)
    #expect(batch.expected == 1 && batch.limit == 1)
  }
}
