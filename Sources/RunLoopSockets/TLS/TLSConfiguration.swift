// SPDX-License-Identifier: Apache-2.0

import CRunLoopOpenSSL

/// How clients make secured connections.
///
/// One ``TLSContext`` is made of it, for any number of connections.
public struct TLSConfiguration: Sendable {
  /// How the server's certificate is checked.
  public enum Verification: Hashable, Sendable {
    /// The certificate has to lead to a root, be valid now, and be for the server's name.
    case full
    /// The same without the name. The owner of any certificate of one of the roots can be the server.
    case withoutName
    /// Only the pins are checked. Without pins, anybody can be the server.
    case pinsOnly
  }

  /// How the server's certificate is checked.
  public var verification = Verification.full
  /// Which certificates are trusted.
  public var roots: [TLSRoots] = [.system]
  /// The SHA-256 digests of public keys, in base64, one of which has to be in the chain of certificates; if it is
  /// empty, any key is accepted.
  ///
  /// A digest is that of the key with its type (SubjectPublicKeyInfo), as curl and browsers use it; it may begin with
  /// "sha256//". With ``Verification/pinsOnly`` the server's own key has to have one of the digests.
  public var pins: [String] = []
  /// The client's own certificate, for servers that ask for one.
  public var identity: TLSIdentity?
  /// The application protocols, such as "h2", the preferred first; if it is empty, the server is not asked.
  public var applicationProtocols: [String] = []
  /// The oldest version of the protocol.
  public var minimumVersion = TLSVersion.tls12
  /// The newest version of the protocol.
  public var maximumVersion = TLSVersion.tls13
  /// How long the handshake may take, from the connection on; nil means indefinitely.
  public var handshakeTimeout: Duration? = .seconds(30)
  /// Whether a connection may resume the session of an earlier connection to the same server, by name.
  public var resumesSessions = true

  /// The usual behaviour: the system's roots, and everything is checked.
  public init() {}
}

/// How a server answers secured connections.
///
/// One ``TLSContext`` is made of it, for any number of connections.
public struct TLSServerConfiguration: Sendable {
  /// Whether clients show certificates.
  public enum ClientVerification: Hashable, Sendable {
    /// They are not asked to show one.
    case none
    /// They are asked, and a certificate that is shown has to be valid.
    case optional
    /// They have to show one.
    case required
  }

  /// The certificate and key for clients that ask for no name, or for one that ``identities`` does not have.
  public var identity: TLSIdentity
  /// The certificates and keys by the name that a client asks for, such as "a.example", or "*.example" for one more
  /// label.
  public var identities: [String: TLSIdentity] = [:]
  /// Whether clients are rejected that ask for no name, or for a name that ``identities`` does not have.
  public var rejectsUnknownNames = false
  /// Whether clients show certificates.
  public var clientVerification = ClientVerification.none
  /// Which issuers of clients' certificates are trusted.
  public var clientRoots: [TLSRoots] = []
  /// The application protocols, such as "h2", the preferred first; if it is empty, clients are not answered.
  ///
  /// A client that offers only others is rejected.
  public var applicationProtocols: [String] = []
  /// The oldest version of the protocol.
  public var minimumVersion = TLSVersion.tls12
  /// The newest version of the protocol.
  public var maximumVersion = TLSVersion.tls13
  /// How long the handshake may take, from when the connection is first added to a loop; nil means indefinitely.
  public var handshakeTimeout: Duration? = .seconds(30)
  /// Whether clients may resume the session of an earlier connection.
  public var resumesSessions = true

  /// The usual behaviour: clients show no certificates.
  ///
  /// - Parameter identity: The server's certificate and key.
  public init(identity: TLSIdentity) { self.identity = identity }
}

/// A version of the protocol.
///
/// Older versions are not supported.
public enum TLSVersion: Hashable, Comparable, Sendable {
  /// TLS 1.2, of RFC 5246.
  case tls12
  /// TLS 1.3, of RFC 8446.
  case tls13

  var number: Int32 { self == .tls12 ? Int32(cos_tls_1_2) : Int32(cos_tls_1_3) }
}

/// Certificates that are trusted.
public enum TLSRoots: Hashable, Sendable {
  /// The certificates of the system, as OpenSSL finds them: on Debian by the package ca-certificates, or where the
  /// environment's `SSL_CERT_FILE` and `SSL_CERT_DIR` point.
  case system
  /// The certificates in a file in PEM.
  case file(String)
  /// The certificates in a text in PEM.
  case pem([UInt8])
}

/// A certificate, with those that lead to its root, and its private key.
///
/// Neither the key nor the password is in its description.
public struct TLSIdentity: Sendable {
  enum Source: Sendable {
    case file(String)
    case pem([UInt8])
  }

  let certificates: Source
  let key: Source
  let password: String?

  /// Takes both from files in PEM, which are read when a ``TLSContext`` is made.
  ///
  /// - Parameters:
  ///   - certificateFile: The certificate, followed by those that lead to its root.
  ///   - keyFile: The private key; it may be the same file.
  ///   - password: The password of the key, if it is encrypted.
  public init(certificateFile: String, keyFile: String, password: String? = nil) {
    certificates = .file(certificateFile)
    key = .file(keyFile)
    self.password = password
  }

  /// Takes both as texts in PEM.
  ///
  /// - Parameters:
  ///   - certificates: The certificate, followed by those that lead to its root.
  ///   - key: The private key.
  ///   - password: The password of the key, if it is encrypted.
  public init(certificates: [UInt8], key: [UInt8], password: String? = nil) {
    self.certificates = .pem(certificates)
    self.key = .pem(key)
    self.password = password
  }
}

extension TLSIdentity: CustomStringConvertible, CustomReflectable {
  /// Where the certificate comes from.
  public var description: String {
    switch certificates {
    case .file(let path): "TLSIdentity(certificateFile: \"\(path)\")"
    case .pem: "TLSIdentity"
    }
  }

  /// Shows nothing: code that prints a value with its contents must not print a key.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
