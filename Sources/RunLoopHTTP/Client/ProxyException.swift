// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// What `no_proxy` says of some hosts: they are asked without a proxy.
///
/// As for curl, a name covers what is below it, with or without a dot before it; `*` covers every host; a numeric
/// address may have the length of a prefix. Besides, `*.` before a name is taken as a dot, and a port covers this port
/// alone.
struct ProxyException: Sendable, Hashable {
  private var host: String
  private var port: UInt16?
  /// How many bits of a numeric address count.
  private var prefix: Int?

  init(_ text: String) {
    var text = text[...]
    if let slash = text.lastIndex(of: "/"), let prefix = Int(text[text.index(after: slash)...]) {
      self.prefix = prefix
      text = text[..<slash]
    } else if let colon = text.lastIndex(of: ":"),
      text.hasPrefix("[")
        ? text[..<colon].hasSuffix("]")
        : text.firstIndex(of: ":") == colon, let port = UInt16(text[text.index(after: colon)...])
    {
      self.port = port
      text = text[..<colon]
    }
    if text.hasPrefix("["), text.hasSuffix("]") { text = text.dropFirst().dropLast() }
    if text.hasPrefix("*.") { text = text.dropFirst() }
    if text.hasPrefix(".") { text = text.dropFirst() }
    if text.count > 1, text.hasSuffix(".") { text = text.dropLast() }
    host = String(text)
  }

  func covers(_ address: WebAddress) -> Bool {
    guard port == nil || port == address.port else { return false }
    if host == "*" { return true }
    if address.isNumeric {
      guard let own = Self.bytes(host), let other = Self.bytes(address.host), own.count == other.count else {
        return false
      }
      let bits = prefix ?? own.count * 8
      guard (0...own.count * 8).contains(bits) else { return false }
      return zip(own, other).enumerated().allSatisfy { index, pair in
        let counted = min(max(bits - index * 8, 0), 8)
        return (pair.0 ^ pair.1) >> (8 - counted) == 0
      }
    }
    return prefix == nil && !host.isEmpty && (address.host == host || address.host.hasSuffix("." + host))
  }

  /// The bytes of a numeric address; nil for a name.
  private static func bytes(_ text: String) -> [UInt8]? {
    var (four, six) = (in_addr(), in6_addr())
    if inet_pton(AF_INET, text, &four) == 1 { return withUnsafeBytes(of: four) { Array($0) } }
    if inet_pton(AF_INET6, text, &six) == 1 { return withUnsafeBytes(of: six) { Array($0) } }
    return nil
  }
}
