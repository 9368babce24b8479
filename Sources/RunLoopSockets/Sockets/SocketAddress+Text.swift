// SPDX-License-Identifier: Apache-2.0

extension SocketAddress: CustomStringConvertible {
  /// Parses an address in the format of ``description``.
  ///
  /// - Parameter text: `127.0.0.1:80`, `[::1]:80`, `unix:/run/service`, or `unix:@name` for an abstract name.
  public init(_ text: String) throws(SocketAddressError) {
    if text.hasPrefix("unix:@") {
      try self.init(abstractName: String(text.dropFirst(6)))
    } else if text.hasPrefix("unix:") {
      try self.init(path: String(text.dropFirst(5)))
    } else {
      guard let colon = text.lastIndex(of: ":") else { throw .noPort(text) }
      let digits = text[text.index(after: colon)...]
      guard digits.utf8.allSatisfy({ (48...57).contains($0) }), let port = UInt16(digits) else {
        throw .notAPort(String(digits))
      }
      let host = text[..<colon]
      if host.hasPrefix("["), host.hasSuffix("]") {
        try self.init(host: String(host.dropFirst().dropLast()), port: port)
        guard family == .ipv6 else { throw .notNumeric(host: String(host)) }
      } else {
        try self.init(host: String(host), port: port)
        guard family == .ipv4 else { throw .noBrackets(text) }
      }
    }
  }

  /// The address, in a format that ``init(_:)`` parses.
  public var description: String {
    if let host, let port { return family == .ipv6 ? "[\(host)]:\(port)" : "\(host):\(port)" }
    if let path { return "unix:\(path)" }
    if let abstractName { return "unix:@\(abstractName)" }
    return "unix:"
  }
}

/// An error that is thrown when a text is not a valid address.
public enum SocketAddressError: Error, Hashable, Sendable {
  /// The host is not a numeric IPv4 or IPv6 address. A host name has to be resolved first.
  case notNumeric(host: String)
  /// There is no such network interface.
  case unknownInterface(String)
  /// The text does not end with a port.
  case noPort(String)
  /// The port is not a number from 0 to 65535.
  case notAPort(String)
  /// A numeric IPv6 address before a port needs brackets.
  case noBrackets(String)
  /// The path or name is empty or contains a zero byte.
  case notAPath(String)
  /// The path or name has more bytes than fit in an address.
  case tooLong(String, limit: Int)
}

extension SocketAddressError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .notNumeric(let host): "\"\(host)\" is not a numeric address"
    case .unknownInterface(let name): "there is no network interface \"\(name)\""
    case .noPort(let text): "\"\(text)\" has no port"
    case .notAPort(let text): "\"\(text)\" is not a port number"
    case .noBrackets(let text): "\"\(text)\" lacks brackets around the host"
    case .notAPath(let text): "\"\(text)\" is not a path for a socket"
    case .tooLong(let text, let limit): "\"\(text)\" has more than \(limit) bytes"
    }
  }
}
