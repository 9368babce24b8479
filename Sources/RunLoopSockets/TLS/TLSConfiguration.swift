// SPDX-License-Identifier: Apache-2.0

import CRunLoopOpenSSL

/// The TLS configuration of clients.
///
/// Create a ``TLSContext`` from it, which can be used for any number of connections.
public struct TLSConfiguration: Sendable {
  /// The checks of the server's certificate.
  public enum Verification: Hashable, Sendable {
    /// The certificate must chain to a trusted root, be currently valid, and match the server's name.
    case full
    /// As ``full``, but without the name. Any certificate issued by one of the roots is accepted.
    case withoutName
    /// Only the pins are checked. Without pins, any server is accepted.
    case pinsOnly
  }

  /// The checks of the server's certificate; defaults to ``Verification/full``.
  public var verification = Verification.full
  /// The trusted root certificates; defaults to the system's.
  public var roots: [TLSRoots] = [.system]
  /// The SHA-256 digests of public keys, in base64, one of which has to be in the certificate chain.
  ///
  /// If this is empty, which is the default, any key is accepted. A digest covers the SubjectPublicKeyInfo structure,
  /// as used by curl and browsers, and may be prefixed with "sha256//". With ``Verification/pinsOnly``, it is the
  /// server's own key that must have one of the digests.
  public var pins: [String] = []
  /// The client's own certificate and key, for servers that request a certificate; defaults to `nil`.
  public var identity: TLSIdentity?
  /// The application protocols to offer (ALPN), such as "h2", in order of preference; defaults to none.
  public var applicationProtocols: [String] = []
  /// The oldest TLS version; defaults to ``TLSVersion/tls12``.
  public var minimumVersion = TLSVersion.tls12
  /// The newest TLS version; defaults to ``TLSVersion/tls13``.
  public var maximumVersion = TLSVersion.tls13
  /// The time limit for the handshake from when the connection is established, 30 seconds by default; `nil` sets no
  /// limit.
  public var handshakeTimeout: Duration? = .seconds(30)
  /// Whether connections may resume the session of an earlier connection to the same server name; the default is true.
  public var resumesSessions = true

  /// Creates the default configuration, which trusts the system's roots and checks everything.
  public init() {}
}

/// The TLS configuration of servers.
///
/// Create a ``TLSContext`` from it, which can be used for any number of connections.
public struct TLSServerConfiguration: Sendable {
  /// Whether clients present certificates.
  public enum ClientVerification: Hashable, Sendable {
    /// Clients are not asked for a certificate.
    case none
    /// Clients are asked for a certificate, which must be valid if it is presented.
    case optional
    /// Clients must present a valid certificate.
    case required
  }

  /// The certificate and key for clients that request no server name, or one that is not in ``identities``.
  public var identity: TLSIdentity
  /// The certificates and keys for the server names that clients request, keyed by a name, such as "a.example", or by a
  /// pattern such as "*.example", which matches one more label; defaults to none.
  public var identities: [String: TLSIdentity] = [:]
  /// Whether to reject clients that request no server name, or one that is not in ``identities``; the default is false.
  public var rejectsUnknownNames = false
  /// Whether clients present certificates; defaults to ``ClientVerification/none``.
  public var clientVerification = ClientVerification.none
  /// The trusted issuers of client certificates; defaults to none.
  public var clientRoots: [TLSRoots] = []
  /// The supported application protocols (ALPN), such as "h2", in order of preference.
  ///
  /// If this is empty, which is the default, none is negotiated. A client that offers only other protocols is rejected.
  public var applicationProtocols: [String] = []
  /// The oldest TLS version; defaults to ``TLSVersion/tls12``.
  public var minimumVersion = TLSVersion.tls12
  /// The newest TLS version; defaults to ``TLSVersion/tls13``.
  public var maximumVersion = TLSVersion.tls13
  /// The time limit for the handshake from when the connection is first added to a loop, 30 seconds by default; `nil`
  /// sets no limit.
  public var handshakeTimeout: Duration? = .seconds(30)
  /// Whether clients may resume the session of an earlier connection; the default is true.
  public var resumesSessions = true

  /// Creates the default configuration, which does not ask clients for certificates.
  ///
  /// - Parameter identity: The server's certificate and key.
  public init(identity: TLSIdentity) { self.identity = identity }
}

/// A TLS version; older ones are not supported.
public enum TLSVersion: Hashable, Comparable, Sendable {
  /// TLS 1.2 (RFC 5246).
  case tls12
  /// TLS 1.3 (RFC 8446).
  case tls13

  var number: Int32 { self == .tls12 ? Int32(cos_tls_1_2) : Int32(cos_tls_1_3) }
}

/// Trusted root certificates.
public enum TLSRoots: Hashable, Sendable {
  /// The system's root certificates as found by OpenSSL: those of the package ca-certificates on Debian, or those that
  /// the environment variables `SSL_CERT_FILE` and `SSL_CERT_DIR` specify.
  case system
  /// The certificates in a PEM file.
  case file(String)
  /// The certificates in a PEM text.
  case pem([UInt8])
}

/// A certificate with its intermediate certificates, and its private key.
///
/// Its description contains neither the key nor the password.
public struct TLSIdentity: Sendable {
  enum Source: Sendable {
    case file(String)
    case pem([UInt8])
  }

  let certificates: Source
  let key: Source
  let password: String?

  /// Creates an identity from PEM files, which are read when a ``TLSContext`` is created.
  ///
  /// - Parameters:
  ///   - certificateFile: The certificate, followed by its intermediate certificates.
  ///   - keyFile: The private key. It can be the same file.
  ///   - password: The password of the key, if it is encrypted.
  public init(certificateFile: String, keyFile: String, password: String? = nil) {
    certificates = .file(certificateFile)
    key = .file(keyFile)
    self.password = password
  }

  /// Creates an identity from PEM texts.
  ///
  /// - Parameters:
  ///   - certificates: The certificate, followed by its intermediate certificates.
  ///   - key: The private key.
  ///   - password: The password of the key, if it is encrypted.
  public init(certificates: [UInt8], key: [UInt8], password: String? = nil) {
    self.certificates = .pem(certificates)
    self.key = .pem(key)
    self.password = password
  }
}

extension TLSIdentity: CustomStringConvertible, CustomReflectable {
  /// The origin of the certificate.
  public var description: String {
    switch certificates {
    case .file(let path): "TLSIdentity(certificateFile: \"\(path)\")"
    case .pem: "TLSIdentity"
    }
  }

  /// A mirror without children, so that code that prints a value's contents does not print a key.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
