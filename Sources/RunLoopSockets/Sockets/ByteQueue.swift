// SPDX-License-Identifier: Apache-2.0

/// A contiguous queue of bytes, which keeps a small buffer so that filling and emptying it repeatedly allocates
/// nothing.
struct ByteQueue {
  private var bytes: [UInt8] = []
  private var start = 0

  /// The maximum capacity in bytes that an empty queue keeps.
  static let keptCapacity = 64 * 1024

  var count: Int { bytes.count - start }

  /// Appends bytes.
  ///
  /// - Complexity: Amortized O(*n*), where *n* is the number of bytes.
  mutating func append(_ more: UnsafeRawBufferPointer) {
    // Reuse the space of sent bytes before the array grows, once it is at least as large as the bytes to move.
    if start > 0, start >= count, bytes.count + more.count > bytes.capacity {
      bytes.removeFirst(start)
      start = 0
    }
    bytes.append(contentsOf: more)
  }

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
