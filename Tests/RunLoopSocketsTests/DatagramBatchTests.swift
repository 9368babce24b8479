// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopSockets

@Suite("The number of datagrams that a pass takes", .timeLimit(.minutes(20)))
struct DatagramBatchTests {
  /// Simulates passes before each of which `arriving` datagrams arrive.
  ///
  /// Returns the number of receives that found nothing, and the datagrams left.
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

  @Test("with a constant rate, few receives find nothing, and no datagram is left", arguments: 1...15)
  func steady(count: Int) {
    var batch = DatagramBatch()
    let (inVain, left) = serve(&batch, count, times: 1000)
    #expect(inVain < 70 && left == 0 && batch.expected == count)
  }

  @Test("with a rising rate, the batches soon grow, up to the maximum")
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

  @Test("with a falling rate, the next batch expects fewer datagrams")
  func shrinking() {
    var batch = DatagramBatch()
    _ = serve(&batch, 8, times: 1000)
    #expect(batch.expected == 8)
    _ = serve(&batch, 2, times: 1)
    #expect(batch.expected == 2)
  }

  @Test("a pass that finds nothing expects one datagram next")
  func nothing() {
    var batch = DatagramBatch()
    batch.noteService(count: 0, isEmpty: true)
    #expect(batch.expected == 1 && batch.limit == 1)
  }
}
