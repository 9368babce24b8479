// SPDX-License-Identifier: Apache-2.0

import RunLoopSockets

struct HostOverrides: Sendable {
  private struct Place: Hashable {
    var host: String
    var port: UInt16?

    /// Parses "host", "host:port", an IPv6 address, or "[address]:port", and returns nil for anything else.
    init?(_ text: String) {
      let isIPv6 = (try? SocketAddress(host: text, port: 0))?.family == .ipv6
      let authority = isIPv6 ? "[\(text)]" : text
      // The two schemes have different default ports, so equal ports mean that the text names one.
      guard let plain = try? WebAddress("http://\(authority)"), let encrypted = try? WebAddress("https://\(authority)"),
        plain.target == "/", plain.user == nil, plain.fragment == nil, !text.contains("/"), !text.contains("?")
      else { return nil }
      host = plain.hostText
      port = plain.port == encrypted.port ? plain.port : nil
    }

    init(host: String, port: UInt16?) { (self.host, self.port) = (host, port) }
  }

  private var places: [Place: Place] = [:]
  /// The reason an override cannot be parsed; nil if all are valid.
  private(set) var fault: String?
  var isEmpty: Bool { places.isEmpty && fault == nil }

  init(_ overrides: [String: String]) {
    for (name, value) in overrides.sorted(by: { $0.key < $1.key }) {
      if let host = Place(name), let place = Place(value) {
        places[host] = place
      } else {
        fault = fault ?? "the host override \(name): \(value) cannot be read"
      }
    }
  }

  /// The target to connect to instead of a URL's host; nil for the host itself.
  func target(of address: WebAddress) throws(HTTP.Error) -> WebAddress? {
    if let fault { throw HTTP.Error(.invalidRequest, fault) }
    guard
      let place = places[Place(host: address.hostText, port: address.port)]
        ?? places[Place(host: address.hostText, port: nil)]
    else { return nil }
    return try? WebAddress("\(address.scheme)://\(place.host):\(place.port ?? address.port)")
  }
}
