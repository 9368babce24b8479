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
  /// Descriptors that came with datagrams, by the index of those; all are closed with this.
  private var passed: [Int: PassedDescriptors] = [:]

  /// No datagrams.
  init() {
    memory = nil
    size = 0
  }

  /// Receives what has arrived, of each datagram `size` bytes at most; nil if that is nothing.
  ///
  /// - Parameter extras: What is wanted beside the bytes; nil for nothing.
  init?(
    from descriptor: Int32, size: Int, in memory: UnsafeMutableRawBufferPointer, _ extras: DatagramExtras?
  ) throws(SystemError) {
    guard let start = memory.baseAddress else { return nil }
    (self.memory, self.size) = (start, size)
    do {
      let answer = try SystemCall.datagramsReceive.makeUninterrupted {
        crl_burst_receive(
          descriptor, start, start + Self.headSize, size, Self.stride(of: size), UInt32(Self.most),
          extras == nil ? 0 : 1)
      }
      count = Int(answer)
      if let extras { takePassed(start, extras) }
    } catch {
      guard error.number == EAGAIN else { throw error }
      return nil
    }
  }

  /// Takes over the descriptors of all datagrams at once: what is not taken in the end is closed.
  private mutating func takePassed(_ start: UnsafeMutableRawPointer, _ extras: DatagramExtras) {
    for index in 0..<count where crl_burst_has_descriptors(start, UInt32(index)) != 0 {
      Ancillary.withOne { ancillary in
        crl_burst_ancillary(start, UInt32(index), ancillary.memory)
        passed[index, default: PassedDescriptors()].take(
          ancillary, limit: extras.maximumDescriptorCount, extras.closing)
      }
    }
  }

  /// What came beside the datagram that was taken last.
  func extras(_ wanted: DatagramExtras) -> Datagram.Extras? {
    guard let memory, next > 0 else { return nil }
    return Ancillary.withOne { ancillary in
      crl_burst_ancillary(memory, UInt32(next - 1), ancillary.memory)
      return wanted.make(ancillary, passed[next - 1] ?? PassedDescriptors())
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
