// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A pool of receive buffers: each call-out in progress, in any loop, uses one.
///
/// Sockets have no buffers of their own, so a thousand idle connections use no memory for receiving. A buffer is taken
/// and returned for each message without a lock. A forked child keeps its own copies of the buffers that were free.
struct ReceiveBuffers: @unchecked Sendable {
  // Sendable: the pointers never change, and the memory that `places` points to is atomic.

  // A relaxed load suffices to find a place; the exchange that takes or fills it acquires or releases the buffer's
  // contents.
  private typealias Place = Atomic<UnsafeMutableRawPointer?>

  /// The size of a buffer in bytes.
  let size: Int
  private let keptCount: Int
  /// The free buffers; never deallocated.
  private let places: UnsafeMutablePointer<Place>

  private init(size: Int, keptCount: Int) {
    self.size = size
    self.keptCount = keptCount
    places = .allocate(capacity: keptCount)
    for index in 0..<keptCount { (places + index).initialize(to: Place(nil)) }
  }

  /// Buffers for a single receive.
  static let single = ReceiveBuffers(size: 64 * 1024, keptCount: 8)
  /// Buffers for a burst of datagrams; pages that small datagrams leave untouched are never backed by memory.
  static let burst = ReceiveBuffers(size: DatagramBurst.memorySize(of: single.size), keptCount: 2)

  func take() -> UnsafeMutableRawBufferPointer {
    for index in 0..<keptCount where places[index].load(ordering: .relaxed) != nil {
      guard let buffer = places[index].exchange(nil, ordering: .acquiring) else { continue }
      return UnsafeMutableRawBufferPointer(start: buffer, count: size)
    }
    return .allocate(byteCount: size, alignment: 64)
  }

  func giveBack(_ buffer: UnsafeMutableRawBufferPointer) {
    for index in 0..<keptCount where places[index].load(ordering: .relaxed) == nil {
      let (isKept, _) = places[index].compareExchange(
        expected: nil, desired: buffer.baseAddress, successOrdering: .releasing, failureOrdering: .relaxed)
      if isKept { return }
    }
    buffer.deallocate()
  }
}
