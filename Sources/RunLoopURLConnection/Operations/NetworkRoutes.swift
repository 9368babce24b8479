// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopLibC

/// The routes of the system, according to the kernel.
///
/// Nothing is sent over the network.
enum NetworkRoutes {
  /// Returns a netlink socket that becomes readable when interfaces, addresses or routes change, or nil on failure.
  @Sendable static func open() -> OwnedDescriptor? {
    // NETLINK_ROUTE, and RTMGRP_LINK and the groups for addresses and routes of IPv4 and IPv6.
    let (family, groups): (Int32, UInt32) = (0, 0x1 | 0x10 | 0x40 | 0x100 | 0x400)
    let type = Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let number = socket(AF_NETLINK, type, family)
    guard number >= 0 else { return nil }
    let descriptor = OwnedDescriptor(number)
    // struct sockaddr_nl.
    var address = (UInt16(AF_NETLINK), UInt16(0), UInt32(0), groups)
    let isBound = withUnsafeBytes(of: &address) { bytes in
      bytes.baseAddress.map { bind(number, $0.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count)) == 0 }
    }
    return isBound == true ? descriptor : nil
  }

  /// Reads and discards all pending messages.
  static func drain(_ descriptor: Int32) {
    withUnsafeTemporaryAllocation(byteCount: 16 * 1024, alignment: 8) { buffer in
      // An overflow (ENOBUFS) also means a change, and is reported once.
      while true {
        let count = read(descriptor, buffer.baseAddress, buffer.count)
        guard count > 0 || count < 0 && (errno == EINTR || errno == ENOBUFS) else { return }
      }
    }
  }

  /// Determines the status from the routes to documentation addresses, to which only a default route leads.
  @Sendable static func status() -> AFNetworkReachabilityStatus {
    var four = sockaddr_in()
    four.sin_family = sa_family_t(AF_INET)
    four.sin_port = UInt16(53).bigEndian
    inet_pton(AF_INET, "192.0.2.1", &four.sin_addr)
    var six = sockaddr_in6()
    six.sin6_family = sa_family_t(AF_INET6)
    six.sin6_port = UInt16(53).bigEndian
    inet_pton(AF_INET6, "2001:db8::1", &six.sin6_addr)
    let routes = [route(AF_INET, &four), route(AF_INET6, &six)]
    let interfaces = routes.compactMap { if case .through(let name) = $0 { name } else { nil } }
    guard interfaces.isEmpty else {
      return interfaces.allSatisfy(isMobile) ? .reachableViaWWAN : .reachableViaWiFi
    }
    return routes.contains(.unknown) ? .unknown : .notReachable
  }

  private enum Route: Equatable {
    case none
    case through(String)
    case unknown
  }

  /// Finds the route to an address by connecting a datagram socket, which sends nothing.
  private static func route<Address>(_ family: Int32, _ address: inout Address) -> Route {
    let number = socket(family, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    // If the system lacks an address family, it has no route for it.
    guard number >= 0 else { return errno == EAFNOSUPPORT ? .none : .unknown }
    let descriptor = OwnedDescriptor(number)
    defer { withExtendedLifetime(descriptor) {} }
    var own = address
    var length = socklen_t(MemoryLayout<Address>.size)
    let isConnected = withUnsafeBytes(of: &address) { bytes in
      bytes.baseAddress.map { connect(number, $0.assumingMemoryBound(to: sockaddr.self), length) == 0 } ?? false
    }
    guard isConnected else { return .none }
    let isNamed = withUnsafeMutableBytes(of: &own) { bytes in
      bytes.baseAddress.map { getsockname(number, $0.assumingMemoryBound(to: sockaddr.self), &length) == 0 } ?? false
    }
    return isNamed ? .through(interface(of: own) ?? "") : .unknown
  }

  /// Returns the interface that has an address.
  private static func interface<Address>(of address: Address) -> String? {
    var first: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&first) == 0 else { return nil }
    defer { freeifaddrs(first) }
    return withUnsafeBytes(of: address) { wanted in
      var next = first
      while let each = next?.pointee {
        next = each.ifa_next
        guard let found = each.ifa_addr, found.pointee.sa_family == wanted.loadUnaligned(as: sa_family_t.self) else {
          continue
        }
        // The address follows the family and the port, and in IPv6 the flow information.
        let (offset, count) = wanted.count == MemoryLayout<sockaddr_in6>.size ? (8, 16) : (4, 4)
        let bytes = UnsafeRawBufferPointer(start: UnsafeRawPointer(found) + offset, count: count)
        if bytes.elementsEqual(wanted[offset..<offset + count]) { return String(cString: each.ifa_name) }
      }
      return nil
    }
  }

  private static func isMobile(_ interface: String) -> Bool {
    ["wwan", "ppp", "rmnet"].contains { interface.hasPrefix($0) }
  }
}
