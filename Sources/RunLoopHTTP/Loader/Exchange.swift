// SPDX-License-Identifier: Apache-2.0

import RunLoopSockets

/// What is asked of a server in one exchange.
struct Exchange {
  var address: WebAddress
  var method: HTTP.Method
  /// All fields that the library does not make.
  var fields: [HTTP.Headers.Field]
  /// From which byte on the body is asked for.
  var range: Int64?
  /// The addresses of the host, or of the proxy; empty if the library needs none.
  var addresses: [SocketAddress]
  /// The addresses of the host behind a proxy that looks up no names.
  var addressesBehindProxy: [SocketAddress] = []
  /// Whether no kept connection may be used.
  var isFresh: Bool
  var proxy: ProxyAddress?
  /// By what the proxy's credential is sent, where a proxy has asked before; nil: by what the proxy asks for.
  var proxyAuthentication: Int?
  /// Whether the request may be sent again.
  var allowsResending = true

  /// What is connected to in place of the host.
  var override: WebAddress?

  /// What is connected to: the host, what replaces it, or the proxy.
  var target: WebAddress { proxy?.address ?? override ?? address }
  /// The proxy, if it is spoken to by HTTP.
  var proxyOfHTTP: WebAddress? { proxy.flatMap { $0.isSOCKS ? nil : $0.address } }
}

extension Exchange {
  /// The fields that are sent.
  ///
  /// A SOCKS proxy reads no fields, and the host behind it must not get the proxy's credential.
  var sentFields: [HTTP.Headers.Field] {
    guard let proxy, proxy.isSOCKS else { return fields }
    return fields.filter { !HTTP.Headers.isSame($0.name, "Proxy-Authorization") }
  }

  /// What requests that are set up alike have in common; nil if this is like no other.
  ///
  /// - Parameter known: A shape that is returned if this has it.
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

  /// Where the library connects to instead of the host; nil for the host itself.
  var route: String? {
    override.map { "\(address.hostText):\(address.port):\($0.hostText):\($0.port)" }
  }

  /// The addresses, as the library takes them.
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
