// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import RunLoopLibC
public import RunLoopSystemEvents

/// The address of a socket: an IPv4 or IPv6 address with a port, or a Unix socket's path or name.
///
/// Internet addresses are numeric; use ``HostResolver`` to resolve host names. Two addresses are equal if their
/// system representations are equal. The corresponding C type is `sockaddr`.
public struct SocketAddress: Hashable, Sendable {
  /// The address families.
  public enum Family: Hashable, Sendable {
    /// An IPv4 address of four bytes, and a port.
    case ipv4
    /// An IPv6 address of sixteen bytes, a port, and an interface if the address is link-local.
    case ipv6
    /// A Unix socket on this machine: a path in the file system, an abstract name, or no name.
    case unix
  }

  /// The bytes of a `sockaddr`.
  let bytes: [UInt8]

  /// The maximum size of an address in bytes.
  static let capacity = 128

  /// Creates an address from a numeric host and a port.
  ///
  /// - Parameters:
  ///   - host: A numeric address, such as `127.0.0.1`, `::1`, or `fe80::1%eth0` with an interface's name or number.
  ///   - port: The port. For listening, zero lets the system choose one.
  public init(host: String, port: UInt16) throws(SocketAddressError) {
    guard !host.utf8.contains(0) else { throw .notNumeric(host: host) }
    if let bytes = SocketAddress.make({ crl_address_make_ipv4(host, port, $0, $1) }) {
      self.bytes = bytes
      return
    }
    let parts = host.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
    var scope: UInt32 = 0
    if parts.count == 2 {
      let name = String(parts[1])
      scope = UInt32(name) ?? crl_interface_number(name)
      guard scope != 0 else { throw .unknownInterface(name) }
    }
    let number = String(parts[0])
    guard let bytes = SocketAddress.make({ crl_address_make_ipv6(number, scope, port, $0, $1) }) else {
      throw .notNumeric(host: host)
    }
    self.bytes = bytes
  }

  /// Creates the address of a path in the file system of at most 107 bytes.
  public init(path: String) throws(SocketAddressError) { try self.init(path: FileChangeSource.Path(path)) }

  /// Creates the address of a path of at most 107 bytes that need not be valid text, such as the path of a
  /// `FileChange`.
  @_disfavoredOverload
  public init(path: FileChangeSource.Path) throws(SocketAddressError) {
    let name = path.bytes
    guard !name.isEmpty, !name.contains(0) else { throw .notAPath(path.string) }
    try self.init(unixName: name + [0], named: path.string, limit: 107)
  }

  /// Creates the address of an abstract name, which is outside the file system, of at most 107 bytes.
  ///
  /// The name disappears with its socket. Every user of the machine can connect to it.
  public init(abstractName: String) throws(SocketAddressError) {
    let name = Array(abstractName.utf8)
    guard !name.isEmpty else { throw .notAPath(abstractName) }
    try self.init(unixName: [0] + name, named: abstractName, limit: 107)
  }

  private init(unixName name: [UInt8], named text: String, limit: Int) throws(SocketAddressError) {
    guard let bytes = SocketAddress.make({ crl_address_make_unix(name, UInt32(name.count), $0, $1) }) else {
      throw .tooLong(text, limit: limit)
    }
    self.bytes = bytes
  }

  /// Creates an address from the bytes of a `sockaddr`, or returns `nil` if the family is not supported.
  init?(bytes: UnsafeRawBufferPointer) {
    let family = crl_address_family(bytes.baseAddress, UInt32(bytes.count))
    guard family == crl_family_ipv4 || family == crl_family_ipv6 || family == crl_family_unix else { return nil }
    self.bytes = Array(bytes)
  }

  /// Creates an address from the bytes of a host, with an interface if the address is link-local.
  init?(host: UnsafeRawBufferPointer, of family: Int32, interface: UInt32, port: UInt16) {
    let bytes = SocketAddress.make { crl_address_make_host(family, host.baseAddress, interface, port, $0, $1) }
    guard let bytes else { return nil }
    self.bytes = bytes
  }

  var isAny: Bool { withBytes { crl_address_is_any($0, $1) } != 0 }

  /// Calls `body` to write a `sockaddr` and return its length, or zero if there is none.
  private static func make(_ body: (UnsafeMutableRawPointer, UInt32) -> Int32) -> [UInt8]? {
    let bytes = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
      guard let address = buffer.baseAddress else { return }
      count = Int(body(address, UInt32(capacity)))
    }
    return bytes.isEmpty ? nil : bytes
  }

  /// Gets an address from the kernel.
  static func ask(
    _ call: SystemCall, _ body: (UnsafeMutableRawPointer, UInt32) -> Int32
  ) throws(SystemError) -> SocketAddress? {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 8)
    defer { buffer.deallocate() }
    guard let start = buffer.baseAddress else { return nil }
    let count = try call.make { body(start, UInt32(capacity)) }
    return SocketAddress(bytes: UnsafeRawBufferPointer(rebasing: buffer[..<min(Int(count), capacity)]))
  }
}

extension SocketAddress {
  /// Returns the loopback address of a family, `127.0.0.1` or `::1`.
  ///
  /// - Parameters:
  ///   - port: The port.
  ///   - family: The family; IPv4 by default.
  /// - Precondition: The family is not `unix`.
  public static func loopback(port: UInt16, family: Family = .ipv4) -> SocketAddress {
    known(family, "127.0.0.1", "::1", port)
  }

  /// Returns the address for listening on all interfaces, `0.0.0.0` or `::`.
  ///
  /// - Parameters:
  ///   - port: The port.
  ///   - family: The family; IPv4 by default.
  /// - Precondition: The family is not `unix`.
  public static func any(port: UInt16, family: Family = .ipv4) -> SocketAddress {
    known(family, "0.0.0.0", "::", port)
  }

  private static func known(_ family: Family, _ ipv4: String, _ ipv6: String, _ port: UInt16) -> SocketAddress {
    precondition(family != .unix, "a Unix address has no port: give it a path")
    let host = family == .ipv6 ? ipv6 : ipv4
    do {
      return try SocketAddress(host: host, port: port)
    } catch {
      fatalError("the system does not read the numeric host \(host): \(error)")
    }
  }

  /// The address family.
  public var family: Family {
    switch systemFamily {
    case crl_family_ipv4: .ipv4
    case crl_family_ipv6: .ipv6
    default: .unix
    }
  }

  /// The system's constant for the family.
  var systemFamily: Int32 { crl_address_family(bytes, UInt32(bytes.count)) }

  /// The numeric host, followed by its interface's number if it has one, or `nil` for a Unix socket.
  public var host: String? {
    guard family != .unix else { return nil }
    let text = String(unsafeUninitializedCapacity: 64) { buffer in
      buffer.withMemoryRebound(to: CChar.self) {
        guard let start = $0.baseAddress else { return 0 }
        return Int(crl_address_print_host(bytes, UInt32(bytes.count), start, 64))
      }
    }
    let scope = crl_address_scope(bytes, UInt32(bytes.count))
    return scope == 0 ? text : "\(text)%\(scope)"
  }

  /// The port, or `nil` for a Unix socket.
  public var port: UInt16? { UInt16(exactly: crl_address_port(bytes, UInt32(bytes.count))) }

  /// The path of a Unix socket in the file system, with replacement characters for invalid UTF-8, or `nil`.
  public var path: String? { pathBytes.map { String(decoding: $0, as: UTF8.self) } }

  /// The bytes of the path of a Unix socket in the file system, or `nil`.
  public var pathBytes: [UInt8]? {
    guard let name = unixName, let first = name.first, first != 0 else { return nil }
    return Array(name.prefix { $0 != 0 })
  }

  /// The path as a C string.
  var pathText: CText? { pathBytes.flatMap { try? CText(bytes: $0) } }

  /// The abstract name of a Unix socket, or `nil`.
  public var abstractName: String? {
    guard let name = unixName, name.first == 0 else { return nil }
    return String(decoding: name.dropFirst(), as: UTF8.self)
  }

  /// The address, or `nil` if it is that of an unbound Unix socket.
  var unlessUnnamed: SocketAddress? { unixName?.isEmpty == true ? nil : self }

  private var unixName: ArraySlice<UInt8>? { family == .unix ? bytes.dropFirst(2) : nil }

  func withBytes<Result>(_ body: (UnsafeRawPointer?, UInt32) -> Result) -> Result {
    bytes.withUnsafeBytes { body($0.baseAddress, UInt32($0.count)) }
  }
}
