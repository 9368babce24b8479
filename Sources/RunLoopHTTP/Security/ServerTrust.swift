// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopLibC

extension HTTP {
  /// The identity that a TLS server presents during the handshake, and the result of the standard verification.
  public struct ServerTrust: Sendable {
    /// The host of the request.
    public let host: String
    /// The certificates in DER, each issued by the next, from the server's own to a trusted root; incomplete and
    /// possibly forged if ``chainError`` is set.
    public let certificates: [[UInt8]]
    /// The reason the chain does not lead to a trusted root or has expired; nil if the chain is valid.
    public let chainError: String?
    /// Whether the server's certificate is for the host.
    public let matchesHost: Bool
    /// The digests of the certificates' public keys, in the format of ``HTTP/Trust/pins``.
    public let pins: [String]

    /// Whether the server passes the standard verification.
    public var isTrusted: Bool { chainError == nil && matchesHost }

    /// Returns whether the chain is valid and leads to one of the anchors, which may be any certificates in DER, such
    /// as the server's own.
    ///
    /// The host is not checked; see ``matchesHost``. If an anchor cannot be parsed, the result is `false`.
    public func isChainTrusted(by anchors: [[UInt8]]) -> Bool {
      Self.withCertificates(certificates) { chain in
        Self.withCertificates(anchors) { clc_chain_is_valid(chain.baseAddress, chain.count, $0.baseAddress, $0.count) }
      } != 0
    }

    /// The digest of a certificate's public key, in the format of ``HTTP/Trust/pins``; nil if it is not valid DER.
    package static func pin(of certificate: [UInt8]) -> String? {
      var count = 0
      let key = certificate.withUnsafeBufferPointer { clc_key_of_certificate($0.baseAddress, $0.count, &count) }
      guard let key else { return nil }
      defer { free(key) }
      return base64(SHA256.digest(Array(UnsafeBufferPointer(start: key, count: count))))
    }

    private static func withCertificates<Value>(
      _ certificates: [[UInt8]], _ body: (UnsafeBufferPointer<clc_certificate>) -> Value
    ) -> Value {
      let all = certificates.flatMap { $0 }
      return all.withUnsafeBufferPointer { bytes in
        var start = bytes.baseAddress
        let each = certificates.map { certificate in
          defer { start = start.map { $0 + certificate.count } }
          return clc_certificate(bytes: start, count: certificate.count, key: nil, key_count: 0)
        }
        return each.withUnsafeBufferPointer(body)
      }
    }
  }
}

extension HTTP.ServerTrust {
  /// Copies the chain presented in a handshake.
  init(host: String, _ shown: clc_server_chain) {
    let chain = UnsafeBufferPointer(start: shown.certificates, count: shown.count)
    self.init(
      host: host,
      certificates: chain.map { Array(UnsafeBufferPointer(start: $0.bytes, count: $0.count)) },
      chainError: shown.reason.map { String(cString: $0) }, matchesHost: shown.matches_host != 0,
      pins: chain.map { base64(SHA256.digest(Array(UnsafeBufferPointer(start: $0.key, count: $0.key_count)))) })
  }

  /// Whether a pin matches the server's key or, if the chain is valid, the key of any certificate above it.
  func matches(_ wanted: [String]) -> Bool {
    (chainError == nil ? pins[...] : pins.prefix(1)).contains { wanted.contains($0) }
  }
}

/// Evaluates the trust in the server of one connection, on the loader's thread.
final class TrustEvaluation {
  private let host: String
  private let trust: HTTP.Trust
  /// The reason the server was rejected; nil if it was not.
  private(set) var failure: HTTP.Error?

  init(host: String, _ trust: HTTP.Trust) { (self.host, self.trust) = (host, trust) }

  /// Installs this evaluation in an OpenSSL context, or returns false if that is not possible.
  func prepare(_ encryption: UnsafeMutableRawPointer?) -> Bool {
    guard let text = try? CText(host) else { return false }
    let context = Unmanaged.passRetained(self).toOpaque()
    return text.withPointer {
      clc_prepare_evaluation(encryption, $0, context, trustEvaluateFunction, trustReleaseFunction)
    } != 0
  }

  fileprivate func accepts(_ shown: clc_server_chain) -> Bool {
    let server = HTTP.ServerTrust(host: host, shown)
    failure = fault(of: server)
    return failure == nil
  }

  private func fault(of server: HTTP.ServerTrust) -> HTTP.Error? {
    if let evaluate = trust.evaluate {
      guard evaluate(server) else { return HTTP.Error(.untrusted, "the program does not trust the server") }
    } else if !trust.allowsInvalidCertificates, !server.isTrusted {
      return HTTP.Error(.untrusted, server.chainError ?? "the certificate is not for \(host)")
    }
    guard trust.pins.isEmpty || server.matches(trust.pins) else {
      return HTTP.Error(.pinMismatch, "no public key of the server's chain is one of the pins")
    }
    return nil
  }
}

extension HTTP.Trust {
  /// A key that requests must have in common to share connections; nil if libcurl compares all relevant settings.
  ///
  /// - Parameter other: A unique key for an ``evaluate`` closure without an ``evaluationKey``.
  func sharingKey(orElse other: @autoclosure () -> String) -> String? {
    guard evaluate != nil || !pins.isEmpty else { return nil }
    let decision = evaluate == nil ? "\(allowsInvalidCertificates)" : evaluationKey ?? other()
    return ([decision] + pins).joined(separator: "\n")
  }
}

private let trustEvaluateFunction: clc_evaluate_function = { context, chain in
  guard let context, let chain else { return 0 }
  return Unmanaged<TrustEvaluation>.fromOpaque(context).takeUnretainedValue().accepts(chain.pointee) ? 1 : 0
}

private let trustReleaseFunction: clc_release_function = { context in
  if let context { Unmanaged<TrustEvaluation>.fromOpaque(context).release() }
}
