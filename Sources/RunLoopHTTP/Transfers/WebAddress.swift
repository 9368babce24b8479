// SPDX-License-Identifier: Apache-2.0

import RunLoopSockets

/// The parts of an http or https URL, normalized for sending.
///
/// A request stores its URL in several places, so this is an immutable object, which is cheap to copy.
final class WebAddress: Sendable {
  private struct Values {
    var scheme: String
    var user: String?
    var password: String?
    var host: String
    var isIPv6: Bool
    var port: UInt16
    var path: String
    var query: String?
    var fragment: String?

    var hostText: String { isIPv6 ? "[\(host)]" : host }
    var target: String { path + (query.map { "?" + $0 } ?? "") }
  }

  private let values: Values
  // Derived values that are used several times per request.
  let isTLS: Bool
  /// The scheme, host and port, to which secrets are bound.
  let origin: String
  /// The URL for libcurl.
  let requestText: String
  let isNumeric: Bool

  enum Failure: Swift.Error, Equatable {
    case scheme(String)
    case malformed(String)
  }

  convenience init(_ text: String) throws(Failure) { self.init(try Self.read(text)) }

  private init(_ values: Values) {
    self.values = values
    isTLS = values.scheme == "https"
    origin = "\(values.scheme)://\(values.hostText):\(values.port)"
    let isDefaultPort = values.port == (isTLS ? 443 : 80)
    requestText = (isDefaultPort ? "\(values.scheme)://\(values.hostText)" : origin) + values.target
    isNumeric =
      values.isIPv6
      || values.host.utf8.allSatisfy({ (48...57).contains($0) || $0 == ASCII.dot })
        && (try? SocketAddress(host: values.host, port: values.port)) != nil
  }

  private static func read(_ text: String) throws(Failure) -> Values {
    let parts = try Parts(text)
    guard let scheme = parts.scheme else { throw .malformed("it has no scheme") }
    guard scheme == "http" || scheme == "https" else { throw .scheme(scheme) }
    guard let authority = parts.authority else { throw .malformed("it has no host") }
    let (user, password, host, isIPv6, port) = try readAuthority(authority, port: scheme == "https" ? 443 : 80)
    return Values(
      scheme: scheme, user: user, password: password, host: host, isIPv6: isIPv6, port: port,
      path: normalPath(parts.path), query: parts.query, fragment: parts.fragment)
  }

  /// Parses a proxy URL with any scheme, and returns an http or, for the scheme https, an https URL.
  static func readProxy(_ text: String) throws(Failure) -> (scheme: String, address: WebAddress) {
    let parts = try Parts(text)
    guard let scheme = parts.scheme else { throw .malformed("it has no scheme") }
    guard let authority = parts.authority else { throw .malformed("it has no host") }
    let usual: UInt16 = scheme == "https" ? 443 : scheme.hasPrefix("socks") ? 1080 : 80
    let (user, password, host, isIPv6, port) = try readAuthority(authority, port: usual)
    let values = Values(
      scheme: scheme == "https" ? scheme : "http", user: user, password: password, host: host, isIPv6: isIPv6,
      port: port, path: "/")
    return (scheme, WebAddress(values))
  }

  /// Resolves a reference relative to this URL (RFC 3986, section 5.2).
  func following(_ reference: String) throws(Failure) -> WebAddress {
    let parts = try Parts(reference)
    if let scheme = parts.scheme {
      guard scheme == "http" || scheme == "https" else { throw .scheme(scheme) }
      guard parts.authority != nil else { throw .malformed("it has no host") }
      var next = try Self.read(reference)
      next.fragment = parts.fragment ?? fragment
      return WebAddress(next)
    }
    var next = values
    next.fragment = parts.fragment ?? fragment
    if let authority = parts.authority {
      (next.user, next.password, next.host, next.isIPv6, next.port) = try Self.readAuthority(
        authority, port: isTLS ? 443 : 80)
      next.path = Self.normalPath(parts.path)
      next.query = parts.query
    } else if parts.path.isEmpty {
      next.query = parts.query ?? query
    } else {
      let base = parts.path.hasPrefix("/") ? "" : String(path[...(path.lastIndex(of: "/") ?? path.startIndex)])
      next.path = Self.normalPath(base + parts.path)
      next.query = parts.query
    }
    return WebAddress(next)
  }

  /// The scheme, "http" or "https".
  var scheme: String { values.scheme }
  /// The decoded user before the `@`.
  var user: String? { values.user }
  var password: String? { values.password }
  /// The host in lower case and ASCII, without brackets around an IPv6 address.
  var host: String { values.host }
  var isIPv6: Bool { values.isIPv6 }
  var port: UInt16 { values.port }
  /// The path, which begins with a slash and has no dot segments.
  var path: String { values.path }
  /// The query, without the question mark.
  var query: String? { values.query }
  var fragment: String? { values.fragment }
  var isDefaultPort: Bool { port == (isTLS ? 443 : 80) }
  /// The host as it is written in a URL, with brackets around an IPv6 address.
  var hostText: String { values.hostText }
  /// The request target: the path and query.
  var target: String { values.target }
  /// The URL for errors and logs, without user, password, query and fragment.
  var safeText: String { "\(scheme)://\(hostText)\(isDefaultPort ? "" : ":\(port)")\(path)" }
  /// The URL for the program, without user and password.
  var text: String { fragment.map { "\(requestText)#\($0)" } ?? requestText }

  /// Removes potential secrets from the text of a URL, which may be invalid.
  static func safeText(of text: String) -> String {
    if let address = try? WebAddress(text) { return address.safeText }
    var rest = text[...]
    for mark in ["#", "?"] { if let end = rest.firstIndex(of: Character(mark)) { rest = rest[..<end] } }
    if let at = rest.lastIndex(of: "@") {
      let scheme = rest.range(of: "://").map { String(rest[..<$0.upperBound]) } ?? ""
      return scheme + rest[rest.index(after: at)...]
    }
    // If a password contains one of these delimiters, the host cannot be distinguished from the user.
    if text.contains("@") { return (rest.range(of: "://").map { String(rest[..<$0.upperBound]) } ?? "") + "…" }
    return String(rest)
  }
}

extension WebAddress {
  /// The five components of a URL reference, percent-encoded where necessary.
  private struct Parts {
    var scheme: String?
    var authority: String?
    var path = ""
    var query: String?
    var fragment: String?

    // Works on bytes, because the delimiters are bytes regardless of any combining characters that follow them.
    init(_ text: String) throws(Failure) {
      var rest = text[...].utf8
      guard rest.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }) else { throw .malformed("it has a control character") }
      if let mark = rest.firstIndex(of: ASCII.hash) {
        fragment = WebAddress.escape(Substring(rest[rest.index(after: mark)...]))
        rest = rest[..<mark]
      }
      if let mark = rest.firstIndex(of: ASCII.questionMark) {
        query = WebAddress.escape(Substring(rest[rest.index(after: mark)...]))
        rest = rest[..<mark]
      }
      if let colon = rest.firstIndex(of: ASCII.colon), Self.isScheme(rest[..<colon]) {
        scheme = Substring(rest[..<colon]).lowercased()
        rest = rest[rest.index(after: colon)...]
      }
      if rest.first == ASCII.slash, rest.dropFirst().first == ASCII.slash {
        rest = rest.dropFirst(2)
        let end = rest.firstIndex(of: ASCII.slash) ?? rest.endIndex
        authority = String(Substring(rest[..<end]))
        rest = rest[end...]
      }
      path = WebAddress.escape(Substring(rest))
    }

    private static func isScheme(_ text: Substring.UTF8View) -> Bool {
      guard let first = text.first, WebAddress.isLetter(first) else { return false }
      return text.allSatisfy {
        WebAddress.isLetter($0) || (48...57).contains($0) || $0 == 43 || $0 == ASCII.hyphen || $0 == ASCII.dot
      }
    }
  }

  private static func isLetter(_ byte: UInt8) -> Bool { (65...90).contains(byte) || (97...122).contains(byte) }

  private static func readAuthority(
    _ text: String, port usual: UInt16
  ) throws(Failure) -> (user: String?, password: String?, host: String, isIPv6: Bool, port: UInt16) {
    var rest = text[...].utf8
    var user: String?
    var password: String?
    if let at = rest.lastIndex(of: ASCII.at) {
      let parts = rest[..<at].split(separator: ASCII.colon, maxSplits: 1, omittingEmptySubsequences: false)
      user = unescape(Substring(parts[0]))
      password = parts.count > 1 ? unescape(Substring(parts[1])) : nil
      rest = rest[rest.index(after: at)...]
    }
    var host: String
    var isIPv6 = false
    if rest.first == ASCII.openingBracket {
      guard let end = rest.firstIndex(of: ASCII.closingBracket) else { throw .malformed("a bracket is missing") }
      host = String(Substring(rest[rest.index(after: rest.startIndex)..<end]))
      guard (try? SocketAddress(host: host, port: 0))?.family == .ipv6 else {
        throw .malformed("the host in brackets is no address of IPv6")
      }
      isIPv6 = true
      rest = rest[rest.index(after: end)...]
    } else {
      let end = rest.firstIndex(of: ASCII.colon) ?? rest.endIndex
      host = try asciiHost(String(Substring(rest[..<end])))
      rest = rest[end...]
    }
    var port = usual
    if rest.first == ASCII.colon {
      let digits = rest.dropFirst()
      if !digits.isEmpty {
        guard digits.allSatisfy({ (48...57).contains($0) }), let number = UInt16(Substring(digits)), number != 0 else {
          throw .malformed("the port is not a number from 1 to 65535")
        }
        port = number
      }
    } else if !rest.isEmpty {
      throw .malformed("something follows the host")
    }
    return (user, password, host, isIPv6, port)
  }

  /// Converts a host name to lower case and ASCII.
  private static func asciiHost(_ host: String) throws(Failure) -> String {
    guard !host.isEmpty else { throw .malformed("the host is empty") }
    var text = host
    if !host.utf8.allSatisfy({ $0 < 0x80 }) {
      do throws(HostName.Failure) {
        text = try HostName.ascii(host)
      } catch {
        switch error {
        case .rejected(let reason): throw .malformed("the host is no name: \(reason)")
        }
      }
    }
    if !text.utf8.allSatisfy({ isLowerHostByte($0) || $0 == ASCII.dot }) { text = text.lowercased() }
    guard text.utf8.allSatisfy({ isLowerHostByte($0) || $0 == ASCII.dot }) else {
      throw .malformed("the host has a character that no name has")
    }
    guard !text.isEmpty, text.utf8.count <= 253, text != "." else { throw .malformed("the host is no name") }
    return text
  }

  private static func isLowerHostByte(_ byte: UInt8) -> Bool {
    (97...122).contains(byte) || (48...57).contains(byte) || byte == ASCII.hyphen || byte == 95
  }

  /// Percent-encodes bytes that are not allowed in a URL, and keeps existing percent-encoding.
  static func escape(_ text: Substring) -> String {
    if text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != 34 && $0 != 60 && $0 != 62 }) { return String(text) }
    var result = ""
    for byte in text.utf8 {
      if byte > 0x20, byte < 0x7f, byte != 34, byte != 60, byte != 62 {
        result.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        let digits = String(byte, radix: 16, uppercase: true)
        result += digits.count == 1 ? "%0" + digits : "%" + digits
      }
    }
    return result
  }

  static func unescape(_ text: Substring) -> String {
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      if byte == 37, rest.count >= 2, let value = UInt8(Substring(rest.prefix(2)), radix: 16) {
        bytes.append(value)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func hasSegmentWithDot(_ path: String) -> Bool {
    var before: UInt8 = 0
    for byte in path.utf8 {
      if byte == ASCII.dot, before == ASCII.slash { return true }
      before = byte
    }
    return false
  }

  /// Removes dot segments from a path (RFC 3986, section 5.2.4).
  static func normalPath(_ path: String) -> String {
    guard !path.isEmpty else { return "/" }
    guard path.utf8.first != ASCII.slash || hasSegmentWithDot(path) else { return path }
    var kept: [Substring] = []
    let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst(path.hasPrefix("/") ? 1 : 0)
    for (number, segment) in segments.enumerated() {
      let isLast = number == segments.count - 1
      switch segment {
      case ".": if isLast { kept.append("") }
      case "..":
        _ = kept.popLast()
        if isLast { kept.append("") }
      default: kept.append(segment)
      }
    }
    return "/" + kept.joined(separator: "/")
  }
}

/// The bytes that separate the components of a URL.
private enum ASCII {
  static var hash: UInt8 { UInt8(ascii: "#") }
  static var hyphen: UInt8 { UInt8(ascii: "-") }
  static var dot: UInt8 { UInt8(ascii: ".") }
  static var slash: UInt8 { UInt8(ascii: "/") }
  static var colon: UInt8 { UInt8(ascii: ":") }
  static var questionMark: UInt8 { UInt8(ascii: "?") }
  static var at: UInt8 { UInt8(ascii: "@") }
  static var openingBracket: UInt8 { UInt8(ascii: "[") }
  static var closingBracket: UInt8 { UInt8(ascii: "]") }
}

extension Substring {
  fileprivate func range(of text: String) -> Range<Index>? {
    var start = startIndex
    while start < endIndex {
      if self[start...].hasPrefix(text) { return start..<index(start, offsetBy: text.count) }
      start = index(after: start)
    }
    return nil
  }
}
