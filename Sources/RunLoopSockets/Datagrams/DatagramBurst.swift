// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// Datagrams that one system call has received, in the order of their arrival.
///
/// They lie in memory of the service that has made the call, which takes them one after the other.
struct DatagramBurst {
  /// How many a system call receives at most.
  static let most = Int(crl_burst_most)

  private let memory: UnsafeMutableRawPointer?
  private let size: Int
  private var next = 0
  private var count = 0

  /// No datagrams.
  init() {
    memory = nil
    size = 0
  }

  /// Receives what has arrived, of each datagram `size` bytes at most; nil if that is nothing.
  init?(from descriptor: Int32, size: Int, in memory: UnsafeMutableRawBufferPointer) throws(SystemError) {
    guard let start = memory.baseAddress else { return nil }
    (self.memory, self.size) = (start, size)
    do {
      let answer = try SystemCall.datagramsReceive.makeUninterrupted {
        crl_burst_receive(descriptor, start, start + Self.headSize, size, Self.stride(of: size), UInt32(Self.most))
      }
      count = Int(answer)
    } catch {
      guard error.number == EAGAIN else { throw error }
      return nil
    }
  }

  /// How many there are that were not taken.
  var remaining: Int { count - next }

  /// Takes the next: its bytes, its length as it was sent, and the address of its sender.
  @inline(__always)
  mutating func takeNext() -> (bytes: UnsafeRawBufferPointer, byteCount: Int, sender: UnsafeRawBufferPointer)? {
    guard next < count, let memory else { return nil }
    let index = UInt32(next)
    let start = memory + Self.headSize + next * Self.stride(of: size)
    next += 1
    let byteCount = Int(crl_burst_length(memory, index))
    var length: UInt32 = 0
    let sender = crl_burst_sender(memory, index, &length)
    return (
      UnsafeRawBufferPointer(start: start, count: min(size, byteCount)), byteCount,
      UnsafeRawBufferPointer(start: sender, count: Int(length))
    )
  }

  /// How many bytes a burst needs of datagrams of a size.
  static func memorySize(of size: Int) -> Int { headSize + most * stride(of: size) }

  private static let headSize = rounded(crl_burst_size())

  /// Small datagrams at a distance of whole pages would share a few lines of the cache.
  private static func stride(of size: Int) -> Int { rounded(size) + 5 * 64 }

  private static func rounded(_ size: Int) -> Int { (size + 63) & ~63 }
}
