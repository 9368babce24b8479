// SPDX-License-Identifier: Apache-2.0

/// A server name as it appears in a certificate: a host name or a numeric address.
enum TLSName: Hashable {
  case host(String)
  case address(String)

  /// Parses a name, which defaults to the address that the client connects to.
  init(_ name: String?, connectingTo address: SocketAddress?) throws(TLSError) {
    guard let name else {
      guard let host = address?.host else { throw TLSError(.noServerName) }
      self = .address(Self.withoutScope(host))
      return
    }
    if !name.contains("["), (try? SocketAddress(host: name, port: 0)) != nil {
      self = .address(Self.withoutScope(name))
      return
    }
    // A fully qualified name may end with a dot, which is omitted in certificates and requests.
    let host = name.hasSuffix(".") ? String(name.dropLast()) : name
    guard Self.isHost(host) else { throw TLSError(.badServerName(name)) }
    self = .host(host)
  }

  var text: String {
    switch self {
    case .host(let name), .address(let name): name
    }
  }

  /// The name to request from the server, or `nil` for an address, which cannot be requested.
  var asked: String? { if case .host(let name) = self { name } else { nil } }

  private static func withoutScope(_ host: String) -> String { String(host.prefix { $0 != "%" }) }

  /// Returns whether a text is a host name: labels of letters, digits, hyphens and underscores.
  static func isHost(_ name: String) -> Bool {
    guard (1...253).contains(name.utf8.count) else { return false }
    return name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { label in
      (1...63).contains(label.count)
        && label.allSatisfy { character in
          switch character {
          case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
          default: false
          }
        }
    }
  }

  /// Returns whether a text is a host name, optionally with a wildcard as its first label.
  static func isPattern(_ pattern: String) -> Bool {
    isHost(pattern.hasPrefix("*.") ? String(pattern.dropFirst(2)) : pattern)
  }
}
