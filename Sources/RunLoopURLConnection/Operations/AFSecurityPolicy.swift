// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopHTTP

/// How a server's certificates are pinned.
public enum AFSSLPinningMode: Sendable, Hashable {
  /// Certificates are not pinned; the trusted roots decide.
  case none
  /// By the public keys of the pinned certificates.
  case publicKey
  /// By the pinned certificates themselves.
  case certificate
}

/// The trust policy of operations, and the client certificate.
///
/// This is the class of the same name in AFNetworking 2.7. With a pinning mode, any certificate of the server's chain
/// may be the pinned one. Certificates are not loaded from a bundle: set ``pinnedCertificates``, without which a
/// pinned operation trusts no server. With ``allowInvalidCertificates``, a key or certificate only counts if it issued
/// the server's own certificate, which AFNetworking does not check.
///
/// A pinning mode, and a domain name that is not validated, need a libcurl built with OpenSSL 3.
public struct AFSecurityPolicy: Sendable {
  /// How the server's certificates are pinned.
  public let sslPinningMode: AFSSLPinningMode
  /// The pinned certificates, each in DER; empty by default.
  public var pinnedCertificates: [Data] = []
  /// Whether the certificate has to match the host; the default is `true`.
  public var validatesDomainName = true
  /// The roots, pins and the client certificate, which AFNetworking does not have; by default those of the system.
  public var trust = HTTP.Trust()

  /// Whether to accept certificates that are untrusted or expired, for tests only; the default is `false`.
  ///
  /// As in AFNetworking, they are still rejected if the name is validated and nothing is pinned; see
  /// ``validatesDomainName``.
  public var allowInvalidCertificates: Bool {
    get { trust.allowsInvalidCertificates }
    set { trust.allowsInvalidCertificates = newValue }
  }

  /// Creates a policy with a pinning mode, which by default trusts what the system trusts.
  public init(pinningMode: AFSSLPinningMode = .none) { sslPinningMode = pinningMode }

  /// The policy that trusts what the system trusts.
  public static let `default` = AFSecurityPolicy()

  /// The policy in the form of the HTTP client.
  var connectionTrust: HTTP.Trust {
    guard sslPinningMode != .none || !validatesDomainName || allowInvalidCertificates else { return trust }
    var made = trust
    made.evaluate = { [self] server in accepts(server) && trust.evaluate?(server) ?? true }
    // A closure of the program's own cannot be compared with others.
    made.evaluationKey = trust.evaluate == nil ? key : nil
    return made
  }

  private var key: String {
    let pinned = pinnedCertificates.map { $0.base64EncodedString() }
    return (["\(sslPinningMode) \(validatesDomainName) \(allowInvalidCertificates)"] + pinned).joined(separator: " ")
  }

  /// Makes the decision of AFNetworking's `evaluateServerTrust:forDomain:`.
  private func accepts(_ server: HTTP.ServerTrust) -> Bool {
    let isPinned = sslPinningMode != .none && !pinnedCertificates.isEmpty
    if allowInvalidCertificates, validatesDomainName, !isPinned { return false }
    let hasName = !validatesDomainName || server.matchesHost
    guard allowInvalidCertificates || server.chainError == nil && hasName else { return false }
    switch sslPinningMode {
    case .none: return true
    case .publicKey: return hasPinnedKey(server)
    case .certificate:
      let pinned = pinnedCertificates.map { [UInt8]($0) }
      return hasName && server.isChainTrusted(by: pinned) && server.certificates.contains { pinned.contains($0) }
    }
  }

  private func hasPinnedKey(_ server: HTTP.ServerTrust) -> Bool {
    let keys = pinnedCertificates.compactMap { HTTP.ServerTrust.pin(of: [UInt8]($0)) }
    return zip(server.pins, server.certificates).enumerated().contains { index, shown in
      keys.contains(shown.0)
        && (index == 0 || server.chainError == nil || server.isChainTrusted(by: [shown.1]))
    }
  }
}
