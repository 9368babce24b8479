// SPDX-License-Identifier: Apache-2.0

import CLibCurl

// MARK: - Trust in the server
extension Attempt {
  /// Whether the trust in the server is evaluated here and not by libcurl.
  var evaluates: Bool {
    transfer.settings.sharingKey != nil && exchange.address.isTLS && CurlLibrary.usesOpenSSL
      && exchange.proxy?.kind != .https
  }

  /// Whether the connection's trust policy is that of this request, as far as it is evaluated here.
  var mayShare: Bool {
    let key = evaluates ? transfer.settings.sharingKey : nil
    guard let connection else {
      return key == nil || exchange.isFresh || !knowsTrust
    }
    return connection.sharingKey == key
  }

  /// Whether libcurl reports the connection on which a request is sent, which it cannot for a Unix socket without
  /// ports.
  var knowsTrust: Bool { CurlLibrary.asksBeforeRequest && transfer.configuration.unixSocket == nil }

  /// Prepares to evaluate the server during the TLS handshake, or returns false if that is not possible.
  func prepareEvaluation(_ encryption: UnsafeMutableRawPointer?) -> Bool {
    let host = exchange.address.host
    let made = TrustEvaluation(
      host: host.hasSuffix(".") ? String(host.dropLast()) : host, transfer.configuration.trust)
    evaluation = made
    guard !made.prepare(encryption) else { return true }
    fail(HTTP.Error(.tlsFailed, "OpenSSL cannot be asked whom the connection trusts"))
    return false
  }
}
