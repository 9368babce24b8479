// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// An entry of `no_proxy`: hosts that are connected to directly.
///
/// As in curl, a name also covers its subdomains, with or without a leading dot, `*` covers every host, and a numeric
/// address may have a prefix length. In addition, a leading `*.` is treated as a dot, and an entry with a port covers
/// only that port.
struct ProxyException: Sendable, Hashable {
  private var host: String
  private var port: UInt16?
  /// The prefix length of a numeric address in bits.
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
    let other = Self.bytes(address.host) ?? Self.shortForm(address.host)
    if address.isNumeric || other != nil {
      guard let own = Self.bytes(host), let other, own.count == other.count else { return false }
      let bits = prefix ?? own.count * 8
      guard (0...own.count * 8).contains(bits) else { return false }
      return zip(own, other).enumerated().allSatisfy { index, pair in
        let counted = min(max(bits - index * 8, 0), 8)
        return (pair.0 ^ pair.1) >> (8 - counted) == 0
      }
    }
    let name = address.host.hasSuffix(".") ? address.host.dropLast() : address.host[...]
    return prefix == nil && !host.isEmpty && (name == host || name.hasSuffix("." + host))
  }

  /// The bytes of an IPv4 address in one of its other forms, such as `127.1` or `0x7f000001`; nil for a name.
  private static func shortForm(_ text: String) -> [UInt8]? {
    var address = in_addr()
    return inet_aton(text, &address) != 0 ? withUnsafeBytes(of: address) { Array($0) } : nil
  }

  /// The bytes of a numeric address; nil for a name.
  private static func bytes(_ text: String) -> [UInt8]? {
    var (four, six) = (in_addr(), in6_addr())
    if inet_pton(AF_INET, text, &four) == 1 { return withUnsafeBytes(of: four) { Array($0) } }
    if inet_pton(AF_INET6, text, &six) == 1 { return withUnsafeBytes(of: six) { Array($0) } }
    return nil
  }
}
