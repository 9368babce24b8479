// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopLibC

extension HTTP {
  /// What an encrypted server shows during the handshake, and what the usual check says of it.
  public struct ServerTrust: Sendable {
    /// The host of the request.
    public let host: String
    /// The certificates in DER, each issued by the next, from the server's own to a trusted root; where
    /// ``chainError`` is not nil, as far as they were found, and not all of them may be what they seem.
    public let certificates: [[UInt8]]
    /// Why the chain does not lead to a trusted root, or is out of date; nil if it is in order.
    public let chainError: String?
    /// Whether the server's certificate is for the host.
    public let matchesHost: Bool
    /// The digests of the certificates' public keys, as ``HTTP/Trust/pins`` has them.
    public let pins: [String]

    /// Whether the usual check accepts the server.
    public var isTrusted: Bool { chainError == nil && matchesHost }

    /// Whether the chain is in order and leads to one of the anchors, which may be any certificates in DER, such as the
    /// server's own.
    ///
    /// The host is not checked; see ``matchesHost``. An anchor that cannot be read makes the result `false`.
    public func isChainTrusted(by anchors: [[UInt8]]) -> Bool {
      Self.withCertificates(certificates) { chain in
        Self.withCertificates(anchors) { clc_chain_is_valid(chain.baseAddress, chain.count, $0.baseAddress, $0.count) }
      } != 0
    }

    /// The digest of a certificate's public key, as ``HTTP/Trust/pins`` has it; nil if it is no certificate in DER.
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
  /// What is shown in a handshake.
  init(host: String, _ shown: clc_server_chain) {
    let chain = UnsafeBufferPointer(start: shown.certificates, count: shown.count)
    self.init(
      host: host,
      certificates: chain.map { Array(UnsafeBufferPointer(start: $0.bytes, count: $0.count)) },
      chainError: shown.reason.map { String(cString: $0) }, matchesHost: shown.matches_host != 0,
      pins: chain.map { base64(SHA256.digest(Array(UnsafeBufferPointer(start: $0.key, count: $0.key_count)))) })
  }

  /// Whether one of the pins is that of the server's key or, in a chain that is in order, of one above it.
  func matches(_ wanted: [String]) -> Bool {
    (chainError == nil ? pins[...] : pins.prefix(1)).contains { wanted.contains($0) }
  }
}

/// Decides on the server of one connection; the loader's thread.
final class TrustEvaluation {
  private let host: String
  private let trust: HTTP.Trust
  /// Why the server was rejected; nil if it was not.
  private(set) var failure: HTTP.Error?

  init(host: String, _ trust: HTTP.Trust) { (self.host, self.trust) = (host, trust) }

  /// Lets it decide on the connections that a context of OpenSSL is for; false if that is impossible.
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
  /// What connections have to have in common so that requests can share them; nil if libcurl looks at all of it.
  ///
  /// - Parameter other: What distinguishes a program's decision that has no text.
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
