// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopHTTP

/// What a server's certificates are compared with.
public enum AFSSLPinningMode: Sendable, Hashable {
  /// With nothing but the trusted roots.
  case none
  /// With the public keys of the pinned certificates.
  case publicKey
  /// With the pinned certificates.
  case certificate
}

/// Whom operations trust, and how they show who they are.
///
/// It is AFNetworking 2.7's class of this name. With a pinning mode, any certificate of the server's chain may be the
/// pinned one. There are no certificates of a bundle: the program sets ``pinnedCertificates``, and without any of them
/// a pinned operation trusts nobody. With ``allowInvalidCertificates``, a key or certificate counts only if the
/// server's own certificate is issued by it, which AFNetworking does not check.
///
/// A mode, and a name that is not validated, need a libcurl that encrypts by OpenSSL 3.
public struct AFSecurityPolicy: Sendable {
  /// What the server's certificates are compared with.
  public let sslPinningMode: AFSSLPinningMode
  /// The certificates that they are compared with, each in DER.
  public var pinnedCertificates: [Data] = []
  /// Whether the certificate has to be for the host.
  public var validatesDomainName = true
  /// The roots, pins and the client's certificate; beyond what AFNetworking has.
  public var trust = HTTP.Trust()

  /// Whether certificates that are not trusted, or are out of date, are accepted: for tests only.
  ///
  /// As with AFNetworking, they are rejected all the same if the name is validated and nothing is pinned; see
  /// ``validatesDomainName``.
  public var allowInvalidCertificates: Bool {
    get { trust.allowsInvalidCertificates }
    set { trust.allowsInvalidCertificates = newValue }
  }

  /// Makes a policy with a mode; without one it trusts what the system trusts.
  public init(pinningMode: AFSSLPinningMode = .none) { sslPinningMode = pinningMode }

  /// Trusts what the system trusts.
  public static let `default` = AFSecurityPolicy()

  /// The policy as the client has it.
  var connectionTrust: HTTP.Trust {
    guard sslPinningMode != .none || !validatesDomainName || allowInvalidCertificates else { return trust }
    var made = trust
    made.evaluate = { [self] server in accepts(server) && trust.evaluate?(server) ?? true }
    // A decision of the program's own is like no other.
    made.evaluationKey = trust.evaluate == nil ? key : nil
    return made
  }

  private var key: String {
    let pinned = pinnedCertificates.map { $0.base64EncodedString() }
    return (["\(sslPinningMode) \(validatesDomainName) \(allowInvalidCertificates)"] + pinned).joined(separator: " ")
  }

  /// What AFNetworking's `evaluateServerTrust:forDomain:` decides.
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
