// SPDX-License-Identifier: Apache-2.0

import RunLoopSockets

extension HTTP {
  /// A cookie.
  public struct Cookie: Sendable, Hashable {
    /// The name.
    public let name: String
    /// The value.
    public let value: String
    /// The host that receives the cookie, or the domain whose hosts receive it.
    public let domain: String
    /// Whether the cookie is sent only to the host itself and not to its subdomains.
    public let isHostOnly: Bool
    /// The port that receives the cookie; nil for the default ports of both schemes.
    ///
    /// RFC 6265 shares cookies between all ports of a host. Here they are limited to the server that set them.
    public let port: Int?
    /// The path prefix for which the cookie is sent.
    public let path: String
    /// Whether the cookie is sent only over TLS.
    public let isSecure: Bool
    /// The expiration time in seconds since 1970; nil for a session cookie, which lasts as long as the client.
    public let expires: Int64?

    /// Creates a cookie.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - value: The value.
    ///   - domain: The host that receives the cookie, or the domain whose hosts receive it.
    ///   - isHostOnly: Whether the cookie is sent only to the host itself.
    ///   - port: The port that receives the cookie; nil for the default ports of both schemes.
    ///   - path: The path prefix for which the cookie is sent.
    ///   - isSecure: Whether the cookie is sent only over TLS.
    ///   - expires: The expiration time in seconds since 1970; nil for a session cookie.
    /// - Throws: ``HTTP/Error/Code/invalidRequest`` if no server could set this cookie.
    public init(
      name: String, value: String, domain: String, isHostOnly: Bool = true, port: Int? = nil, path: String = "/",
      isSecure: Bool = false, expires: Int64? = nil
    ) throws(HTTP.Error) {
      (self.name, self.value, self.domain) = (name, value, try Self.host(domain))
      (self.isHostOnly, self.port, self.path) = (isHostOnly, port, path)
      (self.isSecure, self.expires) = (isSecure, expires)
      if let fault { throw HTTP.Error(.invalidRequest, "the cookie \(name.debugDescription) \(fault)") }
    }
  }
}

extension HTTP.Cookie {
  /// Normalizes a domain in the same way as the host of a URL.
  private static func host(_ domain: String) throws(HTTP.Error) -> String {
    let text = domain.contains(":") ? "[\(domain)]" : domain
    guard let address = try? WebAddress("http://\(text)/"), address.isDefaultPort, address.user == nil,
      address.requestText == "http://\(address.hostText)/"
    else { throw HTTP.Error(.invalidRequest, "the domain \(domain.debugDescription) of a cookie is no host") }
    return address.host
  }

  /// The reason a server could not set this cookie; nil if it could.
  private var fault: String? {
    func isLine(_ text: String) -> Bool { text.utf8.allSatisfy { $0 >= 32 && $0 != 127 } }
    func isText(_ text: String) -> Bool { isLine(text) && !text.utf8.contains(UInt8(ascii: ";")) }
    guard !name.isEmpty, isText(name), !name.contains("="), trimmed(name[...]) == name else {
      return "has a name that no cookie has"
    }
    guard isText(value), trimmed(value[...]) == value else { return "has a value that no cookie has" }
    // Attributes contain no semicolons, but the default path, which is the URL's, may.
    guard path.hasPrefix("/"), isLine(path) else { return "has the path \(path.debugDescription)" }
    guard name.utf8.count + value.utf8.count + path.utf8.count <= 4096 else { return "is longer than 4096 bytes" }
    guard port.map({ (1...65_535).contains($0) }) ?? true else { return "has the port \(port ?? 0)" }
    guard isHostOnly || Self.canBeShared(domain) else { return "would be for all hosts below \(domain)" }
    return keepsPromise ? nil : "is not what its name promises"
  }

  /// Whether the cookie satisfies the requirements of its name prefix (RFC 6265bis, section 5.7).
  private var keepsPromise: Bool {
    let promise = name.lowercased()
    guard isSecure || !promise.hasPrefix("__secure-") else { return false }
    return isSecure && isHostOnly && path == "/" || !promise.hasPrefix("__host-")
  }

  /// Whether a cookie may cover all hosts below a domain, which requires that it is not a public suffix.
  ///
  /// Like curl, rejects a domain that ends in a dot, because the public suffix list has no such names. A last label
  /// that begins with a digit is part of a numeric address, and addresses with the same end are unrelated.
  private static func canBeShared(_ domain: String) -> Bool {
    let labels = domain.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard labels.count > 1, let first = labels.last?.first, !(48...57).contains(first) else { return false }
    return HostName.isPublicSuffix(domain) != true
  }

  /// Whether this cookie replaces another one, or is replaced by it.
  func isSame(as other: HTTP.Cookie) -> Bool {
    name == other.name && domain == other.domain && path == other.path && port == other.port
  }
}

extension HTTP.Cookie {
  /// Parses a `Set-Cookie` header (RFC 6265, section 5.2), or returns nil if the header has to be ignored.
  ///
  /// Every cookie created this way can be saved to a file and loaded again.
  init?(_ text: String, from address: WebAddress, now: Int64) {
    guard text.utf8.count <= 4096, !text.utf8.contains(where: { $0 < 32 && $0 != 9 || $0 == 127 }) else { return nil }
    let parts = text.split(separator: ";", omittingEmptySubsequences: false)
    guard let equals = parts[0].firstIndex(of: "=") else { return nil }
    let name = trimmed(parts[0][..<equals])
    guard !name.isEmpty else { return nil }
    var domain: String?
    var path: String?
    var isSecure = false
    var (maximumAge, expires): (Int64?, Int64?)
    for part in parts.dropFirst() {
      let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let value = pair.count > 1 ? trimmed(pair[1]) : ""
      switch trimmed(pair[0]).lowercased() {
      case "domain" where !value.isEmpty:
        domain = (value.hasPrefix(".") ? String(value.dropFirst()) : value).lowercased()
      case "path": path = value.hasPrefix("/") ? value : nil
      case "secure": isSecure = true
      case "max-age": maximumAge = Self.seconds(value) ?? maximumAge
      case "expires": expires = WebDate.read(value) ?? expires
      default: break
      }
    }
    let given = domain
    if let given {
      guard !given.hasSuffix(".") else { return nil }
      // A public suffix must not receive cookies from the hosts below it. A host with that name may set its own, as
      // may a numeric address or a name without a dot.
      if given != address.host {
        guard Self.isBelow(address.host, given), Self.canBeShared(given) else { return nil }
      } else if !Self.canBeShared(given) {
        domain = nil
      }
    }
    // An insecure connection must not set a secure cookie.
    guard !isSecure || address.isTLS else { return nil }
    self.name = name
    value = trimmed(parts[0][parts[0].index(after: equals)...])
    self.domain = domain ?? address.host
    isHostOnly = domain == nil
    port = Self.port(of: address)
    self.path = path ?? Self.defaultPath(address.path)
    self.isSecure = isSecure
    self.expires =
      maximumAge.map { $0 <= 0 ? 0 : now.addingReportingOverflow($0).overflow ? .max : now + $0 } ?? expires
    // A host that is itself a public suffix also set the Domain attribute, which `__Host-` forbids.
    guard fault == nil, given == nil || !name.lowercased().hasPrefix("__host-") else { return nil }
  }

  /// Parses a `Max-Age`, of which a number that is too large or too small counts as the largest or smallest one.
  private static func seconds(_ text: String) -> Int64? {
    if let number = Int64(text) { return number }
    let digits = text.utf8.dropFirst(text.hasPrefix("-") ? 1 : 0)
    guard !digits.isEmpty, digits.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return text.hasPrefix("-") ? .min : .max
  }

  /// Whether this cookie would replace another one, or be sent before it.
  func shadows(_ other: HTTP.Cookie) -> Bool {
    guard name == other.name, port == other.port else { return false }
    guard domain == other.domain || Self.isBelow(domain, other.domain) || Self.isBelow(other.domain, domain) else {
      return false
    }
    return Self.isBelow(path: path, other.path)
  }

  func isMeant(for address: WebAddress, now: Int64) -> Bool {
    guard domain == address.host || !isHostOnly && Self.isBelow(address.host, domain) else { return false }
    guard !isSecure || address.isTLS, port == Self.port(of: address), !hasExpired(at: now) else { return false }
    return Self.isBelow(path: address.path, path)
  }

  func hasExpired(at now: Int64) -> Bool { expires.map { $0 <= now } ?? false }

  private static func isBelow(path: String, _ other: String) -> Bool {
    guard path.hasPrefix(other) else { return false }
    return other.hasSuffix("/") || path.count == other.count || path.dropFirst(other.count).hasPrefix("/")
  }

  private static func port(of address: WebAddress) -> Int? { address.isDefaultPort ? nil : Int(address.port) }

  private static func isBelow(_ host: String, _ domain: String) -> Bool { host.hasSuffix("." + domain) }

  private static func defaultPath(_ path: String) -> String {
    guard let last = path.lastIndex(of: "/"), last != path.startIndex else { return "/" }
    return String(path[..<last])
  }
}
