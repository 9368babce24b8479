// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents
import Synchronization

/// Descriptors received with bytes or with a datagram, up to a limit.
struct PassedDescriptors {
  private(set) var taken: [ReceivedDescriptor] = []
  /// The number of closed descriptors: those beyond the limit, and one for each message with descriptors that the
  /// process had no room for, whose number the system does not report.
  private(set) var droppedCount = 0

  /// Takes over the descriptors of a message, and closes those beyond the limit, which `closing` counts until they are
  /// closed.
  mutating func take(_ ancillary: borrowing Ancillary, limit: Int, _ closing: ClosingCount) {
    for index in 0..<ancillary.descriptorCount {
      let number = ancillary.descriptor(index)
      if taken.count < limit {
        taken.append(ReceivedDescriptor(number))
      } else {
        droppedCount += 1
        DescriptorCloser.close(number, keeping: ClosingCount.Share(closing))
      }
    }
    if ancillary.hasLost { droppedCount += 1 }
  }

  mutating func takeAll() -> [ReceivedDescriptor] {
    defer { taken = [] }
    return taken
  }
}

/// The number of unrequested descriptors of a socket's peers that use up descriptors of the process until they are
/// closed.
final class ClosingCount: Sendable {
  /// More than a single message can carry.
  private static let most = 256
  // Relaxed, because the count orders no other accesses.
  private let count = Atomic<Int>(0)

  var isExceeded: Bool { count.load(ordering: .relaxed) > Self.most }

  /// Counts one descriptor until it is closed.
  final class Share: Sendable {
    private let whole: ClosingCount

    init(_ whole: ClosingCount) {
      self.whole = whole
      whole.count.wrappingAdd(1, ordering: .relaxed)
    }

    deinit { whole.count.wrappingSubtract(1, ordering: .relaxed) }
  }
}

/// Memory for the ancillary data of one message; valid within the closure of ``withOne(_:)``.
struct Ancillary: ~Copyable {
  let memory: UnsafeMutablePointer<crl_ancillary>

  var descriptorCount: Int { Int(memory.pointee.descriptor_count) }
  var hasLost: Bool { memory.pointee.has_lost != 0 }
  var hasDescriptors: Bool { descriptorCount > 0 || hasLost }

  func descriptor(_ index: Int) -> Int32 {
    withUnsafePointer(to: &memory.pointee.descriptors) {
      UnsafeRawPointer($0).load(fromByteOffset: index * MemoryLayout<Int32>.stride, as: Int32.self)
    }
  }

  @inline(__always)
  static func withOne<Result>(_ body: (borrowing Ancillary) -> Result) -> Result {
    withUnsafeTemporaryAllocation(of: crl_ancillary.self, capacity: 1) { memory in
      guard let start = memory.baseAddress else { fatalError("an allocation has no address") }
      return body(Ancillary(memory: start))
    }
  }
}

extension Socket {
  /// Receives bytes and, on a Unix socket, the descriptors passed with them; requires the lock.
  @inline(__always)
  func receiveBytes(
    _ bytes: UnsafeMutableRawBufferPointer, from descriptor: OwnedDescriptor
  ) throws(SystemError) -> Int? {
    receivesDescriptors ? try receivePassing(bytes, from: descriptor) : try descriptor.receive(bytes)
  }

  @inline(never)
  private func receivePassing(
    _ bytes: UnsafeMutableRawBufferPointer, from descriptor: OwnedDescriptor
  ) throws(SystemError) -> Int? {
    let received = Ancillary.withOne { ancillary in
      Result { () throws(SystemError) -> Int? in
        do throws(SystemError) {
          let count = try SystemCall.streamRead.makeUninterrupted {
            crl_ancillary_receive(descriptor.number, bytes.baseAddress, bytes.count, nil, nil, ancillary.memory)
          }
          if ancillary.hasDescriptors { try takePassed(ancillary) }
          return Int(count)
        } catch {
          guard error.number == EAGAIN else { throw error }
          return nil
        }
      }
    }
    return try received.get()
  }

  private func takePassed(_ ancillary: borrowing Ancillary) throws(SystemError) {
    let closing = closingCount ?? ClosingCount()
    closingCount = closing
    passed.take(ancillary, limit: options.maximumDescriptorCount, closing)
    guard closing.isExceeded else { return }
    throw SystemError(call: SystemCall.streamRead.rawValue, number: ETOOMANYREFS)
  }

  /// Returns the descriptors passed by a peer on this machine (`SCM_RIGHTS`) that were not taken before, in order.
  ///
  /// A descriptor is available together with the bytes it was sent with: in the handler's call for them, and after
  /// ``read(into:)`` or ``receive(atMost:)``. Bytes sent later are not received together with them. At most
  /// ``Options/maximumDescriptorCount`` descriptors are kept. Those that are not taken are closed when the socket is
  /// invalidated or released. Can be called from any thread.
  public func takeDescriptors() -> [ReceivedDescriptor] { lock.ifOwned(else: []) { passed.takeAll() } }

  /// The number of the peer's descriptors that were closed because there were more than
  /// ``Options/maximumDescriptorCount``, or because the process had reached its own limit, which counts once per
  /// message.
  ///
  /// Can be used from any thread.
  public var droppedDescriptorCount: Int { lock.ifOwned(else: 0) { passed.droppedCount } }
}
