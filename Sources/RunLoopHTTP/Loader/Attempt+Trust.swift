// SPDX-License-Identifier: Apache-2.0

import CLibCurl

// Whom the connections of an attempt trust.
extension Attempt {
  /// Whether it is decided here whom the connection trusts, and not by libcurl.
  var evaluates: Bool {
    transfer.settings.sharingKey != nil && exchange.address.isTLS && CurlLibrary.usesOpenSSL
      && exchange.proxy?.kind != .https
  }

  /// Whether the connection trusts whom this request trusts, as far as that is decided here.
  var mayShare: Bool {
    let key = evaluates ? transfer.settings.sharingKey : nil
    guard let connection else {
      return key == nil || exchange.isFresh || !knowsTrust
    }
    return connection.sharingKey == key
  }

  /// Whether it is asked, and known, on which connection a request is sent: one by a path has no ports by which it is
  /// found.
  var knowsTrust: Bool { CurlLibrary.asksBeforeRequest && transfer.configuration.unixSocket == nil }

  /// Decides on the server of a connection that is being encrypted for this request; false if that is impossible.
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
