// SPDX-License-Identifier: Apache-2.0

import RunLoopSockets

struct Exchange {
  var address: WebAddress
  var method: HTTP.Method
  /// All headers except those that libcurl adds.
  var fields: [HTTP.Headers.Field]
  /// The offset from which the body is requested; nil for the whole body.
  var range: Int64?
  /// The addresses of the host or the proxy; empty if libcurl needs none.
  var addresses: [SocketAddress]
  /// The addresses of the host behind a proxy that does not resolve names.
  var addressesBehindProxy: [SocketAddress] = []
  var isFresh: Bool
  var proxy: ProxyAddress?
  /// The scheme for the proxy's credential, if known from an earlier challenge; nil to negotiate it.
  var proxyAuthentication: Int?
  var allowsResending = true

  /// The target to connect to instead of the host.
  var override: WebAddress?

  var target: WebAddress { proxy?.address ?? override ?? address }
  var proxyOfHTTP: WebAddress? { proxy.flatMap { $0.isSOCKS ? nil : $0.address } }
}

extension Exchange {
  /// The headers to send.
  ///
  /// A SOCKS proxy does not read headers, and the host behind it must not receive the proxy's credential.
  var sentFields: [HTTP.Headers.Field] {
    guard let proxy, proxy.isSOCKS else { return fields }
    return fields.filter { !HTTP.Headers.isSame($0.name, "Proxy-Authorization") }
  }

  /// Returns the options that this exchange shares with others; nil if it shares none.
  ///
  /// - Parameter known: A shape that is returned instead of a new one if it is equal.
  func shape(_ settings: OwnConfiguration, hasBody: Bool, orElse known: Handle.Shape?) -> Handle.Shape? {
    guard method == .get, !hasBody, proxy == nil else { return nil }
    let lines = resolveLines
    if let known, known.settings === settings, known.isTLS == address.isTLS, known.isFresh == isFresh,
      known.addresses == lines, known.route == route
    {
      return known
    }
    return Handle.Shape(settings: settings, isTLS: address.isTLS, isFresh: isFresh, addresses: lines, route: route)
  }

  /// The `CURLOPT_CONNECT_TO` entry for the override; nil if there is none.
  var route: String? {
    override.map { "\(address.hostText):\(address.port):\($0.hostText):\($0.port)" }
  }

  /// The addresses as `CURLOPT_RESOLVE` entries.
  var resolveLines: [String] {
    func lines(_ target: WebAddress, _ addresses: [SocketAddress]) -> [String] {
      guard !addresses.isEmpty else { return [] }
      let texts = addresses.compactMap { address in address.host.map { address.family == .ipv6 ? "[\($0)]" : $0 } }
      return ["-\(target.host):\(target.port)", "+\(target.host):\(target.port):\(texts.joined(separator: ","))"]
    }
    return addressesBehindProxy.isEmpty
      ? lines(target, addresses) : lines(target, addresses) + lines(address, addressesBehindProxy)
  }
}
