// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// The ancillary data of a socket's datagrams, for a socket that reports any; guarded by the socket's lock.
final class DatagramExtras {
  let maximumDescriptorCount: Int
  let closing = ClosingCount()
  private let descriptor: Int32
  /// The socket's port, or zero until the first datagram needs it.
  private var port: UInt16 = 0
  /// The arrival of the last datagram, reused if the next has the same.
  private var lastArrival: (family: Int32, interface: UInt32, destination: UInt128, local: UInt128, Datagram.Arrival)?

  private init(_ descriptor: Int32, _ options: DatagramSocket.Options) {
    self.descriptor = descriptor
    maximumDescriptorCount = options.maximumDescriptorCount
  }

  /// Enables the ancillary data that a socket reports, or returns `nil` if there is none.
  ///
  /// - Parameters:
  ///   - descriptor: The socket's descriptor.
  ///   - address: The address that the socket is bound to, or `nil` if it is unbound.
  ///   - family: The family of the socket's addresses.
  static func prepare(
    _ descriptor: Int32, _ address: SocketAddress?, _ family: SocketAddress.Family, _ options: DatagramSocket.Options
  ) throws(SystemError) -> DatagramExtras? {
    let reportsDestination = options.reportsDestination || address?.isAny == true
    if reportsDestination, family != .unix {
      let systemFamily = family == .ipv6 ? crl_family_ipv6 : crl_family_ipv4
      do throws(SystemError) {
        _ = try SystemCall.socketOption.make { crl_datagram_report_destination(descriptor, systemFamily) }
      } catch {
        // The destination is optional unless the options ask for it.
        if options.reportsDestination { throw error }
      }
    }
    if options.reportsTime { _ = try SystemCall.socketOption.make { crl_datagram_report_time(descriptor) } }
    guard reportsDestination || options.reportsTime || family == .unix else { return nil }
    return DatagramExtras(descriptor, options)
  }

  /// Whether too many dropped descriptors are waiting to be closed; no further ones are received then, so the
  /// system closes them.
  var refusesDescriptors: Bool { closing.isExceeded }

  func make(_ ancillary: borrowing Ancillary, _ passed: PassedDescriptors) -> Datagram.Extras? {
    let nanoseconds = ancillary.memory.pointee.nanoseconds
    let arrival = arrival(ancillary)
    guard arrival != nil || nanoseconds >= 0 || !passed.taken.isEmpty || passed.droppedCount > 0 else { return nil }
    return Datagram.Extras(arrival, nanoseconds >= 0 ? nanoseconds : nil, passed)
  }

  private func arrival(_ ancillary: borrowing Ancillary) -> Datagram.Arrival? {
    let found = ancillary.memory
    guard found.pointee.family != 0 else { return nil }
    let destination = withUnsafeBytes(of: &found.pointee.destination) { $0.loadUnaligned(as: UInt128.self) }
    let local = withUnsafeBytes(of: &found.pointee.local) { $0.loadUnaligned(as: UInt128.self) }
    if let last = lastArrival, last.family == found.pointee.family, last.interface == found.pointee.interface,
      last.destination == destination, last.local == local
    {
      return last.4
    }
    if port == 0 { port = (try? SocketAddress.ask(.socketName) { crl_socket_name(descriptor, $0, $1) })??.port ?? 0 }
    guard let arrival = Datagram.Arrival(ancillary, port: port) else { return nil }
    lastArrival = (found.pointee.family, found.pointee.interface, destination, local, arrival)
    return arrival
  }
}
