// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents
import Synchronization

/// Descriptors that came with bytes or with a datagram, up to a limit.
struct PassedDescriptors {
  private(set) var taken: [ReceivedDescriptor] = []
  /// How many were closed: those beyond the limit, and those that the process had no room for, of which the system
  /// does not say how many there were: one for each message.
  private(set) var droppedCount = 0

  /// Takes over what came with a message; each descriptor is kept, or closed and counted in `closing` until it is.
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

  /// Removes and returns those that are kept.
  mutating func takeAll() -> [ReceivedDescriptor] {
    defer { taken = [] }
    return taken
  }
}

/// How many descriptors of a socket's peers, which nobody has asked for, wait to be closed.
///
/// Each of them is one less for the process, and its sender decides how long closing it takes.
final class ClosingCount: Sendable {
  /// More than a message can have.
  private static let most = 256
  // Relaxed: a count that orders nothing.
  private let count = Atomic<Int>(0)

  var isExceeded: Bool { count.load(ordering: .relaxed) > Self.most }

  /// A descriptor that waits.
  final class Share: Sendable {
    private let whole: ClosingCount

    init(_ whole: ClosingCount) {
      self.whole = whole
      whole.count.wrappingAdd(1, ordering: .relaxed)
    }

    deinit { whole.count.wrappingSubtract(1, ordering: .relaxed) }
  }
}

/// Memory for what the system delivers beside the bytes of one message; valid while the allocation is.
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

  /// Calls a closure with memory for one message.
  @inline(__always)
  static func withOne<Result>(_ body: (borrowing Ancillary) -> Result) -> Result {
    withUnsafeTemporaryAllocation(of: crl_ancillary.self, capacity: 1) { memory in
      guard let start = memory.baseAddress else { fatalError("an allocation has no address") }
      return body(Ancillary(memory: start))
    }
  }
}

extension Socket {
  /// Receives bytes, with the descriptors among them that a peer within this machine passes.
  ///
  /// Under the lock.
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

  /// Takes the descriptors that a peer within this machine has passed (`SCM_RIGHTS`) and that were not taken before, in
  /// their order.
  ///
  /// A descriptor is here when the bytes it was sent with are: in the call of the handler with them, and after
  /// ``read(into:)`` or ``receive(atMost:)``. Bytes that were sent later are not received together with them. At most
  /// ``Options/maximumDescriptorCount`` wait here; those that are not taken are closed when the socket is invalidated
  /// or released. Can be called from any thread.
  public func takeDescriptors() -> [ReceivedDescriptor] { lock.ifOwned(else: []) { passed.takeAll() } }

  /// How many descriptors of the peer were closed, as there were more than ``Options/maximumDescriptorCount`` or the
  /// process could have no more, which counts once for a message.
  ///
  /// Can be used from any thread.
  public var droppedDescriptorCount: Int { lock.ifOwned(else: 0) { passed.droppedCount } }
}
