// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RunLoopSockets

@Suite("The queue of bytes to send", .timeLimit(.minutes(20)))
struct ByteQueueTests {
  /// A queue with numbered bytes, and the next number at each end.
  private struct Numbered {
    var queue = ByteQueue()
    var first = 0
    var next = 0
    var movedCount = 0
    private var address: UInt?

    mutating func append(_ count: Int) {
      let bytes = (next..<next + count).map { UInt8(truncatingIfNeeded: $0) }
      let (before, held) = (address, queue.count)
      bytes.withUnsafeBytes { queue.append($0) }
      next += bytes.count
      noteAddress()
      if held > 0, before != address { movedCount += held }
    }

    mutating func removeFirst(_ count: Int) {
      queue.removeFirst(count)
      first += count
      noteAddress()
    }

    private mutating func noteAddress() { address = queue.withBytes { UInt(bitPattern: $0.baseAddress) } }

    var isInOrder: Bool {
      queue.withBytes { bytes in
        bytes.count == next - first && bytes.indices.allSatisfy { bytes[$0] == UInt8(truncatingIfNeeded: first + $0) }
      }
    }
  }

  @Test("a queue that stays equally full moves each byte a few times at most, however full it is")
  func full() {
    var numbered = Numbered()
    numbered.append(30_000)
    // The sizes include some that leave hardly any room.
    while numbered.queue.count < 140_000 {
      numbered.append(64)
      let (moved, next) = (numbered.movedCount, numbered.next)
      for _ in 0..<100 {
        numbered.removeFirst(64)
        numbered.append(64)
      }
      #expect(numbered.movedCount - moved <= 4 * (numbered.next - next) + numbered.queue.count)
    }
    #expect(numbered.isInOrder)
  }
}
