// SPDX-License-Identifier: Apache-2.0

import TestRules
import Testing
import TestSupport

@testable import RunLoopCore

@Suite("The queue of blocks")
struct BlockQueueTests {
  @Test(
    "against plain lists: two modes' queues with own and shared blocks, taken and detached",
    .rule(.r53, .r55, .r57, .r59), arguments: 1...6)
  func model(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let ran = Recorder()
    var queues = Queues()
    var model = Model()
    var sequence: UInt64 = 0
    for _ in 0..<600 {
      let isFirst = random.oneIn(2)
      switch random.below(8) {
      case 0, 1:
        sequence += 1
        let block = ran.block(sequence)
        queues.append(.init(sequence: sequence, work: .single(block)), toFirst: isFirst)
        model.append(sequence, toFirst: isFirst)
      case 2, 3:
        sequence += 1
        let shared = SharedBlock(ran.block(sequence), modes: [], isForCommonModes: false)
        for isFirst in [true, false] {
          queues.append(.init(sequence: sequence, work: .shared(shared)), toFirst: isFirst)
          model.append(sequence, toFirst: isFirst)
        }
      case 4, 5:
        let visible = random.oneIn(2) ? 0 : UInt64(random.below(Int(sequence) + 2))
        #expect(queues.hasBlock(from: visible, inFirst: isFirst) == model.hasBlock(from: visible, inFirst: isFirst))
      default:
        // A batch as in a pass, restricted to younger blocks if the pass is nested in a block.
        let visible = random.oneIn(2) ? 0 : UInt64(random.below(Int(sequence) + 2))
        queues.runBatch(from: visible, ofFirst: isFirst)
        #expect(ran.takeAll() == model.takeBatch(from: visible, ofFirst: isFirst))
      }
      queues.check()
    }
    queues.runBatch(from: 0, ofFirst: true)
    #expect(ran.takeAll() == model.takeBatch(from: 0, ofFirst: true))
    queues.runBatch(from: 0, ofFirst: false)
    #expect(ran.takeAll() == model.takeBatch(from: 0, ofFirst: false))
  }

  @Test(
    "blocks posted between two sequence numbers can be taken out, and the rest keeps its order", .rule(.r55),
    arguments: 0...9)
  func between(from: UInt64) {
    for end in from...10 {
      let ran = Recorder()
      var queue = BlockQueue()
      var batch = BlockQueue()
      let posted: [UInt64] = [2, 3, 5, 8]
      for sequence in posted { queue.append(.init(sequence: sequence, work: .single(ran.block(sequence)))) }
      queue.detach(from: from, below: end, into: &batch)
      queue.checkInvariants()
      batch.checkInvariants()
      batch.runAll()
      #expect(ran.takeAll() == posted.filter { from <= $0 && $0 < end })
      queue.runAll()
      #expect(ran.takeAll() == posted.filter { !(from <= $0 && $0 < end) })
    }
  }

  @Test("blocks posted before the sequence number stay in order", .rule(.r59))
  func hiddenPrefix() {
    let ran = Recorder()
    var queue = BlockQueue()
    var batch = BlockQueue()
    for sequence in [2, 3, 5, 8] as [UInt64] {
      queue.append(.init(sequence: sequence, work: .single(ran.block(sequence))))
    }
    queue.detach(from: 4, into: &batch)
    batch.runAll()
    #expect(ran.takeAll() == [5, 8])
    let rest = queue.count
    let isHidden = !queue.hasBlock(from: 4)
    #expect(rest == 2 && isHidden)
    queue.append(.init(sequence: 9, work: .single(ran.block(9))))
    queue.detach(from: 0, into: &batch)
    batch.runAll()
    #expect(ran.takeAll() == [2, 3, 9])
    let isEmpty = queue.isEmpty
    #expect(isEmpty)
  }

  @Test("a shared block that another mode has run is not in the queue", .rule(.r55))
  func taken() {
    let ran = Recorder()
    var queue = BlockQueue()
    let shared = SharedBlock(ran.block(1), modes: [], isForCommonModes: false)
    queue.append(.init(sequence: 1, work: .shared(shared)))
    let before = queue.hasBlock(from: 0)
    shared.take()?.body()
    let after = queue.hasBlock(from: 0)
    #expect(before && !after)
    #expect(shared.take() == nil)
    #expect(ran.takeAll() == [1])
  }

  @Test("shared blocks run by another mode do not pile up in a mode that never runs", .rule(.r55))
  func noPile() {
    let ran = Recorder()
    var queue = BlockQueue()
    for sequence in 1...10_000 as ClosedRange<UInt64> {
      let shared = SharedBlock(ran.block(sequence), modes: [], isForCommonModes: false)
      queue.append(.init(sequence: sequence, work: .shared(shared)))
      shared.take()?.body()
      queue.noteTaken()
    }
    let count = queue.count
    #expect(count == 0)
  }

  @Test("shared blocks do not pile up behind a block that waits for a mode that never runs", .rule(.r55))
  func noPileBehind() {
    let ran = Recorder()
    var queue = BlockQueue()
    queue.append(.init(sequence: 1, work: .single(ran.block(1))))
    for sequence in 2...10_000 as ClosedRange<UInt64> {
      let shared = SharedBlock(ran.block(sequence), modes: [], isForCommonModes: false)
      queue.append(.init(sequence: sequence, work: .shared(shared)))
      shared.take()?.body()
      queue.noteTaken()
    }
    let count = queue.count
    #expect(count <= 2)
  }

  @Test("shared blocks do not pile up between blocks that wait for a mode that never runs", .rule(.r55))
  func noPileBetween() {
    let ran = Recorder()
    var queue = BlockQueue()
    var sequence: UInt64 = 0
    for _ in 0..<100 {
      let burst = (0..<100).map { _ in SharedBlock(ran.block(0), modes: [], isForCommonModes: false) }
      for shared in burst {
        sequence += 1
        queue.append(.init(sequence: sequence, work: .shared(shared)))
      }
      sequence += 1
      queue.append(.init(sequence: sequence, work: .single(ran.block(sequence))))
      for shared in burst {
        _ = shared.take()
        queue.noteTaken()
      }
      queue.checkInvariants()
    }
    // A hundred waiting blocks, and at most as many that have been taken.
    let count = queue.count
    #expect(count <= 2 * 100)
    queue.runAll()
    #expect(ran.takeAll() == (1...100).map { UInt64($0 * 101) })
  }
}

extension BlockQueue {
  /// Runs all blocks, like a pass with its batch.
  fileprivate mutating func runAll() {
    while !isEmpty { if case .single(let block)? = takeFirst().work.take() { block.body() } }
  }
}

private struct Queues: ~Copyable {
  private var first = BlockQueue()
  private var second = BlockQueue()

  mutating func append(_ entry: BlockQueue.Entry, toFirst isFirst: Bool) {
    if isFirst { first.append(entry) } else { second.append(entry) }
  }

  mutating func hasBlock(from sequence: UInt64, inFirst isFirst: Bool) -> Bool {
    isFirst ? first.hasBlock(from: sequence) : second.hasBlock(from: sequence)
  }

  mutating func runBatch(from sequence: UInt64, ofFirst isFirst: Bool) {
    var batch = BlockQueue()
    if isFirst { first.detach(from: sequence, into: &batch) } else { second.detach(from: sequence, into: &batch) }
    batch.checkInvariants()
    batch.runAll()
  }

  func check() {
    first.checkInvariants()
    second.checkInvariants()
  }
}

private struct Model {
  private var first: [UInt64] = []
  private var second: [UInt64] = []

  mutating func append(_ sequence: UInt64, toFirst isFirst: Bool) {
    if isFirst { first.append(sequence) } else { second.append(sequence) }
  }

  func hasBlock(from sequence: UInt64, inFirst isFirst: Bool) -> Bool {
    (isFirst ? first : second).contains { $0 >= sequence }
  }

  mutating func takeBatch(from sequence: UInt64, ofFirst isFirst: Bool) -> [UInt64] {
    let batch = (isFirst ? first : second).filter { $0 >= sequence }
    // Blocks that one mode runs are removed from the other.
    first.removeAll(where: batch.contains)
    second.removeAll(where: batch.contains)
    return batch
  }
}

private final class Recorder: @unchecked Sendable {
  // Sendable: used by one test on one thread.
  private var numbers: [UInt64] = []

  func block(_ number: UInt64) -> Block { Block { self.numbers.append(number) } }

  func takeAll() -> [UInt64] {
    defer { numbers = [] }
    return numbers
  }
}
