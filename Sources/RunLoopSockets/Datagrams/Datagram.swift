// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore

/// A datagram that a task has received.
public struct Datagram: Hashable, Sendable {
  /// The bytes that arrived; fewer than were sent if the datagram was cut off.
  public let bytes: [UInt8]
  /// The sender and the original length.
  public let envelope: Envelope

  /// The information about a datagram besides its bytes.
  public struct Envelope: Hashable, Sendable {
    /// The sender's address, to which an answer can be sent; nil for a Unix socket that is not bound.
    public let sender: SocketAddress?
    /// How many bytes were sent.
    public let byteCount: Int
    /// Whether bytes are missing at the end, because there was no room for them (`MSG_TRUNC`).
    public let isTruncated: Bool
    /// What only some sockets report; nil for the others.
    let extras: Extras?

    /// The address that the sender has sent the datagram to: one of this machine's, or that of a group or a network.
    ///
    /// Reported by a socket that is bound to the address of all interfaces, or with
    /// ``DatagramSocket/Options/reportsDestination``; nil for others. The port is the socket's own.
    public var destination: SocketAddress? { extras?.arrival?.destination }
    /// The address of this machine to answer from, as with ``DatagramSocket/send(_:to:from:)-([UInt8],_,_)``.
    ///
    /// It is the ``destination`` or, of a datagram to a network, the address of the interface in that network. Nil
    /// means that the system chooses: it is not reported, or was sent to a group of IPv6.
    public var localAddress: SocketAddress? { extras?.arrival?.localAddress }
    /// The number of the interface that the datagram arrived at; reported together with ``destination``.
    public var interface: UInt32? { extras?.arrival?.interface }
    /// When the system received the datagram: the time since 1970 by its clock, which can be set (`CLOCK_REALTIME`).
    ///
    /// Reported with ``DatagramSocket/Options/reportsTime``.
    public var time: Duration? { extras?.nanoseconds.map { .nanoseconds($0) } }
    /// The descriptors that the sender within this machine has passed with the datagram, at most
    /// ``DatagramSocket/Options/maximumDescriptorCount``; those that are not taken are closed.
    public var descriptors: [ReceivedDescriptor] { extras?.descriptors ?? [] }
    /// How many other descriptors came with the datagram and were closed; one stands for all that the process could not
    /// have.
    public var droppedDescriptorCount: Int { extras?.droppedDescriptorCount ?? 0 }
  }

  /// Where a datagram has arrived.
  struct Arrival: Hashable, Sendable {
    let destination: SocketAddress
    let localAddress: SocketAddress?
    let interface: UInt32
  }

  /// In an object of its own: most datagrams have none of it, and each envelope is copied.
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
  /// Where a datagram has arrived, by what the system has delivered with it; nil if that says nothing of it.
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
