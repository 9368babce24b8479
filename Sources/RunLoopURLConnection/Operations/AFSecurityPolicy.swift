// SPDX-License-Identifier: Apache-2.0

public import RunLoopHTTP

/// Whom operations trust, and how they show who they are.
///
/// AFNetworking's policy compares certificates of the program's bundle. Here roots and pins are named by
/// `HTTP.Trust`.
public struct AFSecurityPolicy: Sendable {
  /// The roots, pins and the client's certificate.
  public var trust = HTTP.Trust()

  /// Whether certificates that are not trusted, or are another host's, are accepted: for tests only.
  public var allowInvalidCertificates: Bool {
    get { trust.allowsInvalidCertificates }
    set { trust.allowsInvalidCertificates = newValue }
  }

  /// Trusts what the system trusts.
  public init() {}

  /// Trusts what the system trusts.
  public static let `default` = AFSecurityPolicy()
}
