// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore

/// A datagram that a task has received.
public struct Datagram: Hashable, Sendable {
  /// The bytes that arrived, fewer than were sent if the datagram was truncated.
  public let bytes: [UInt8]
  /// The sender and the original length.
  public let envelope: Envelope

  /// The information about a datagram besides its bytes.
  public struct Envelope: Hashable, Sendable {
    /// The sender's address, to which a reply can be sent, or `nil` for an unbound Unix socket.
    public let sender: SocketAddress?
    /// The number of bytes that were sent.
    public let byteCount: Int
    /// Whether the end of the datagram is missing because there was no room for it (`MSG_TRUNC`).
    public let isTruncated: Bool
    /// Information that only some sockets report, or `nil`.
    let extras: Extras?

    /// The address that the datagram was sent to: one of this machine, or a multicast or broadcast address.
    ///
    /// Reported if the socket is bound to the wildcard address or has ``DatagramSocket/Options/reportsDestination``
    /// set, and `nil` otherwise. The port is the socket's own.
    public var destination: SocketAddress? { extras?.arrival?.destination }
    /// The local address to reply from, for example with ``DatagramSocket/send(_:to:from:)-([UInt8],_,_)``.
    ///
    /// This is the ``destination`` or, for a broadcast, the interface's address in that network. It is `nil`, which
    /// lets the system choose, if it is not reported or if the datagram was sent to an IPv6 multicast group.
    public var localAddress: SocketAddress? { extras?.arrival?.localAddress }
    /// The number of the interface that the datagram arrived at, reported together with ``destination``.
    public var interface: UInt32? { extras?.arrival?.interface }
    /// The time at which the system received the datagram, since 1970 by the settable clock `CLOCK_REALTIME`.
    ///
    /// Reported with ``DatagramSocket/Options/reportsTime``, and `nil` otherwise.
    public var time: Duration? { extras?.nanoseconds.map { .nanoseconds($0) } }
    /// The descriptors passed with the datagram by a sender on this machine, at most
    /// ``DatagramSocket/Options/maximumDescriptorCount``.
    ///
    /// Those that are not taken are closed.
    public var descriptors: [ReceivedDescriptor] { extras?.descriptors ?? [] }
    /// The number of other descriptors that arrived with the datagram and were closed; those that the process had no
    /// room for count as one.
    public var droppedDescriptorCount: Int { extras?.droppedDescriptorCount ?? 0 }
  }

  /// The address and interface at which a datagram has arrived.
  struct Arrival: Hashable, Sendable {
    let destination: SocketAddress
    let localAddress: SocketAddress?
    let interface: UInt32
  }

  /// A separate object, because most datagrams have no extras and each envelope is copied.
  final class Extras: Hashable, Sendable {
    let arrival: Arrival?
    let nanoseconds: Int64?
    let descriptors: [ReceivedDescriptor]
    let droppedDescriptorCount: Int

    init(_ arrival: Arrival?, _ nanoseconds: Int64?, _ passed: PassedDescriptors) {
      self.arrival = arrival
      self.nanoseconds = nanoseconds
      descriptors = passed.taken
      droppedDescriptorCount = passed.droppedCount
    }

    static func == (one: Extras, other: Extras) -> Bool {
      one === other
        || one.arrival == other.arrival && one.nanoseconds == other.nanoseconds
          && one.descriptors == other.descriptors && one.droppedDescriptorCount == other.droppedDescriptorCount
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(arrival)
      hasher.combine(nanoseconds)
    }
  }
}

extension Datagram.Arrival {
  /// Reads the arrival from a datagram's ancillary data, or returns `nil` if the system did not deliver it.
  init?(_ ancillary: borrowing Ancillary, port: UInt16) {
    let found = ancillary.memory
    guard found.pointee.family != 0 else { return nil }
    let local = withUnsafeBytes(of: &found.pointee.local) { $0.contains { $0 != 0 } }
    let address = { (host: UnsafeRawBufferPointer) in
      SocketAddress(host: host, of: found.pointee.family, interface: found.pointee.interface, port: port)
    }
    guard let destination = withUnsafeBytes(of: &found.pointee.destination, address) else { return nil }
    self.destination = destination
    localAddress = local ? withUnsafeBytes(of: &found.pointee.local, address) : nil
    interface = found.pointee.interface
  }
}
