// SPDX-License-Identifier: Apache-2.0

/// Bytes that wait to be sent, in one piece.
///
/// It keeps its room while it is small, so that a queue that fills and empties repeatedly allocates nothing.
struct ByteQueue {
  private var bytes: [UInt8] = []
  private var start = 0

  /// What an empty queue keeps at most, in bytes.
  static let keptCapacity = 64 * 1024

  var count: Int { bytes.count - start }

  /// Appends bytes.
  ///
  /// Amortised O(n) in their number.
  mutating func append(_ more: UnsafeRawBufferPointer) {
    // What was sent makes room before the array grows, once it is as much as what would have to be moved.
    if start > 0, start >= count, bytes.count + more.count > bytes.capacity {
      bytes.removeFirst(start)
      start = 0
    }
    bytes.append(contentsOf: more)
  }

  /// Drops the first bytes.
  mutating func removeFirst(_ count: Int) {
    start += count
    guard start == bytes.count else { return }
    bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
    start = 0
  }

  mutating func removeAll() { self = ByteQueue() }

  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[start...])) }
  }
}
