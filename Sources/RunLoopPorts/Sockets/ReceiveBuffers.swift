// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The buffers into which sockets receive: one for each call-out that is under way, in whatever loop.
///
/// A socket has none of its own, so that a thousand idle connections hold no memory for what they may receive.
final class ReceiveBuffers: @unchecked Sendable {
  // Sendable: guarded by the lock.

  private static let ours = PerProcess { ReceiveBuffers() }

  /// This process's.
  static var shared: ReceiveBuffers { ours.value }

  /// How many bytes one receive takes at most.
  static let size = 64 * 1024
  private static let keptCount = 8

  private let lock = Lock()
  private var kept: ContiguousArray<UnsafeMutableRawBufferPointer> = []

  private init() { kept.reserveCapacity(Self.keptCount) }

  func take() -> UnsafeMutableRawBufferPointer {
    if let buffer = lock.withLock({ kept.popLast() }) { return buffer }
    return .allocate(byteCount: Self.size, alignment: 64)
  }

  func giveBack(_ buffer: UnsafeMutableRawBufferPointer) {
    let isKept = lock.withLock {
      guard kept.count < Self.keptCount else { return false }
      kept.append(buffer)
      return true
    }
    if !isKept { buffer.deallocate() }
  }
}
