// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// Datagrams received by one system call, in the order of their arrival, stored in memory of the service that takes
/// them.
struct DatagramBurst {
  /// The maximum number of datagrams per system call.
  static let most = Int(crl_burst_most)

  private let memory: UnsafeMutableRawPointer?
  private let size: Int
  private var next = 0
  private var count = 0
  /// The descriptors passed with datagrams, keyed by the datagrams' indices; closed with this value unless they are
  /// taken.
  private var passed: [Int: PassedDescriptors] = [:]

  init() {
    memory = nil
    size = 0
  }

  /// Receives the datagrams that have arrived, up to `size` bytes of each, or returns `nil` if there are none.
  ///
  /// - Parameter extras: The ancillary data to receive, or `nil` for none.
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

  /// Takes over the descriptors of all datagrams at once, so that those that are not used are closed.
  private mutating func takePassed(_ start: UnsafeMutableRawPointer, _ extras: DatagramExtras) {
    for index in 0..<count where crl_burst_has_descriptors(start, UInt32(index)) != 0 {
      Ancillary.withOne { ancillary in
        crl_burst_ancillary(start, UInt32(index), ancillary.memory)
        passed[index, default: PassedDescriptors()].take(
          ancillary, limit: extras.maximumDescriptorCount, extras.closing)
      }
    }
  }

  /// Returns the ancillary data of the datagram that was taken last.
  func extras(_ wanted: DatagramExtras) -> Datagram.Extras? {
    guard let memory, next > 0 else { return nil }
    return Ancillary.withOne { ancillary in
      crl_burst_ancillary(memory, UInt32(next - 1), ancillary.memory)
      return wanted.make(ancillary, passed[next - 1] ?? PassedDescriptors())
    }
  }

  var remaining: Int { count - next }

  /// Takes the next datagram: its bytes, its original length, and its sender's address.
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

  /// Returns the memory in bytes that a burst of datagrams of a size needs.
  static func memorySize(of size: Int) -> Int { headSize + most * stride(of: size) }

  private static let headSize = rounded(crl_burst_size())

  /// The padding keeps datagrams off whole-page distances, where they would share a few cache lines.
  private static func stride(of size: Int) -> Int { rounded(size) + 5 * 64 }

  private static func rounded(_ size: Int) -> Int { (size + 63) & ~63 }
}
