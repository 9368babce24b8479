// SPDX-License-Identifier: Apache-2.0

import RunLoopSockets

/// Where hosts are connected to instead, as a configuration says.
struct HostOverrides: Sendable {
  /// A host, and a port if one is named.
  private struct Place: Hashable {
    var host: String
    var port: UInt16?

    /// Reads "host", "host:port", an address of IPv6, or "[address]:port"; nil if it is none.
    init?(_ text: String) {
      let isIPv6 = (try? SocketAddress(host: text, port: 0))?.family == .ipv6
      let authority = isIPv6 ? "[\(text)]" : text
      // The usual ports of the two schemes differ, so that a port that is the same was named.
      guard let plain = try? WebAddress("http://\(authority)"), let encrypted = try? WebAddress("https://\(authority)"),
        plain.target == "/", plain.user == nil, plain.fragment == nil, !text.contains("/"), !text.contains("?")
      else { return nil }
      host = plain.hostText
      port = plain.port == encrypted.port ? plain.port : nil
    }

    init(host: String, port: UInt16?) { (self.host, self.port) = (host, port) }
  }

  private var places: [Place: Place] = [:]
  /// What cannot be read; nil if there is nothing.
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

  /// What is connected to in place of an address's host; nil for the host itself.
  func target(of address: WebAddress) throws(HTTP.Error) -> WebAddress? {
    if let fault { throw HTTP.Error(.invalidRequest, fault) }
    guard
      let place = places[Place(host: address.hostText, port: address.port)]
        ?? places[Place(host: address.hostText, port: nil)]
    else { return nil }
    return try? WebAddress("\(address.scheme)://\(place.host):\(place.port ?? address.port)")
  }
}
