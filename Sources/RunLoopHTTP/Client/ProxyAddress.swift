// SPDX-License-Identifier: Apache-2.0

/// The address of a proxy and the protocol it uses.
struct ProxyAddress: Sendable {
  enum Kind: String, Sendable {
    case http
    case https
    case socks4
    case socks4a
    case socks5
    case socks5h
  }

  let kind: Kind
  let address: WebAddress
  /// The environment variable that names the proxy; nil if the program does.
  let variable: String?

  /// Parses a proxy URL, whose scheme defaults to http.
  init(_ text: String, variable: String? = nil) throws(HTTP.Error) {
    let what = variable.map { "the proxy that \($0) names" } ?? "the proxy's address"
    do throws(WebAddress.Failure) {
      let (scheme, address) = try WebAddress.readProxy(text.contains("://") ? text : "http://" + text)
      // curl treats "socks" as SOCKS4.
      guard let kind = Kind(rawValue: scheme == "socks" ? "socks4" : scheme) else { throw .scheme(scheme) }
      (self.kind, self.address) = (kind, address)
    } catch {
      switch error {
      case .scheme(let scheme):
        throw HTTP.Error(.proxyFailed, "\(what) has the scheme \(scheme), which is not one of http, https or SOCKS")
      case .malformed(let reason): throw HTTP.Error(.proxyFailed, "\(what) cannot be read: \(reason)")
      }
    }
    self.variable = variable
    guard HTTP.Credential(user: address.user ?? "", password: address.password ?? "").isSendable else {
      throw HTTP.Error(.proxyFailed, "\(what) has a credential with a control character")
    }
  }

  var isSOCKS: Bool { kind != .http && kind != .https }
  /// Whether the proxy looks up the names of hosts.
  var looksUpHosts: Bool { kind != .socks4 && kind != .socks5 }
  /// The proxy's URL for libcurl, without user and password.
  var text: String { "\(kind.rawValue)://\(address.hostText):\(address.port)" }

  /// Whether a failure of a request through this proxy is the proxy's fault.
  ///
  /// libcurl reports a rejection by a SOCKS proxy with an error code of its own, which already maps to `proxyFailed`.
  /// Later failures, such as one in the TLS handshake, are attributed to the host.
  ///
  /// - Parameters:
  ///   - code: The error that libcurl's result maps to.
  ///   - requests: The number of times the request was about to be sent.
  ///   - hasConnected: Whether a connection was made, at least to the proxy.
  func hasFailed(_ code: HTTP.Error.Code, requests: Int, hasConnected: Bool) -> Bool {
    guard code != .proxyFailed else { return true }
    guard isSOCKS, requests == 0 else { return false }
    return code == .cannotConnect || code == .connectionLost && !hasConnected
  }

  /// Adds the environment variable that names the proxy to an error message.
  func detail(_ text: String) -> String { variable.map { "\(text) (the proxy that \($0) names)" } ?? text }
}
