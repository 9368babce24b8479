// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Buffers into which sockets receive: one for each call-out that is under way, in whatever loop.
///
/// A socket has none of its own, so that a thousand idle connections hold no memory for what they may receive. They are
/// taken and given back for each message, so there is no lock; a child of a fork goes on with its copies of those that
/// were free.
struct ReceiveBuffers: @unchecked Sendable {
  // Sendable: the pointer is never changed, and what it leads to is atomic.

  // Relaxed where a place is looked for: it is taken, or filled, by an exchange that acquires or releases what is in
  // it.
  private typealias Place = Atomic<UnsafeMutableRawPointer?>

  /// How many bytes one of them has.
  let size: Int
  private let keptCount: Int
  /// Where the free ones are kept, for as long as the process lives.
  private let places: UnsafeMutablePointer<Place>

  private init(size: Int, keptCount: Int) {
    self.size = size
    self.keptCount = keptCount
    places = .allocate(capacity: keptCount)
    for index in 0..<keptCount { (places + index).initialize(to: Place(nil)) }
  }

  /// For one receive.
  static let single = ReceiveBuffers(size: 64 * 1024, keptCount: 8)
  /// For a burst of datagrams.
  ///
  /// What small datagrams do not reach of it never becomes memory.
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
