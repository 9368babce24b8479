// SPDX-License-Identifier: Apache-2.0

/// A server's name as its certificate has it: a host's, or a numeric address.
enum TLSName: Hashable {
  case host(String)
  case address(String)

  /// Reads a name; with nil, it is the address that the client connects to.
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
    // A full name may end with a dot, which certificates and requests do not have.
    let host = name.hasSuffix(".") ? String(name.dropLast()) : name
    guard Self.isHost(host) else { throw TLSError(.badServerName(name)) }
    self = .host(host)
  }

  /// The text of it.
  var text: String {
    switch self {
    case .host(let name), .address(let name): name
    }
  }

  /// The name that the server is asked for; an address is not asked for.
  var asked: String? { if case .host(let name) = self { name } else { nil } }

  private static func withoutScope(_ host: String) -> String { String(host.prefix { $0 != "%" }) }

  /// Whether a text is a host's name: labels of letters, digits, hyphens and underscores.
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

  /// Whether a text is a host's name, or one with a star for its first label.
  static func isPattern(_ pattern: String) -> Bool {
    isHost(pattern.hasPrefix("*.") ? String(pattern.dropFirst(2)) : pattern)
  }
}
