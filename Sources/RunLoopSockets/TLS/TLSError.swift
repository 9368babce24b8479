// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// An error of a TLS connection or context.
///
/// A socket reports it as ``SocketError/tls(_:)``. It names the peer if there is one, and contains no secrets such as
/// keys or passwords.
public struct TLSError: Error, Hashable, Sendable {
  /// The cause of an error.
  public enum Cause: Hashable, Sendable {
    // Errors before a connection.

    /// OpenSSL 3 is not installed or is not usable. The text names the file, the reason and the package.
    case libraryMissing(String)
    /// The file of a certificate or key cannot be read.
    case file(path: String, SystemError)
    /// There is no certificate in PEM format, or OpenSSL rejects it, with its source and OpenSSL's reason.
    case badCertificate(source: String, reason: String)
    /// There is no private key in PEM format, or the password does not decrypt it.
    case badKey(source: String, reason: String)
    /// The private key does not match the certificate.
    case keyMismatch(source: String)
    /// The text is not the base64 encoding of a SHA-256 digest of 32 bytes.
    case badPin(String)
    /// The name of an application protocol is empty or longer than 255 bytes, or all names are longer than 65535 bytes.
    case badApplicationProtocol(String)
    /// The text is neither an ASCII host name nor a numeric address.
    case badServerName(String)
    /// The client needs a server name, because it connects to a Unix address or uses a descriptor that is not a TCP
    /// socket.
    case noServerName
    /// The oldest TLS version is newer than the newest.
    case noVersion
    /// The socket is already using TLS.
    case alreadySecured
    /// A client's context was used for a server, or a server's for a client.
    case wrongSide
    /// There is not enough memory for the connection.
    case outOfMemory

    // Errors of the peer's certificate.

    /// The peer's certificate, or one in its chain, has expired.
    case expired
    /// The peer's certificate, or one in its chain, is not valid yet.
    case notYetValid
    /// The certificate is for other hosts.
    case wrongHost(expected: String)
    /// The peer's certificate is self-signed and not among the roots.
    case selfSigned
    /// The certificate does not chain to a trusted root.
    case unknownIssuer
    /// The certificate is for another purpose, for example a server certificate presented by a client.
    case wrongPurpose
    /// A signature in the chain is not valid.
    case badSignature
    /// A key or digest in the chain is too weak.
    case weak(reason: String)
    /// No pin matches the peer's public keys.
    case pinMismatch
    /// The certificate is rejected for another reason, as described by OpenSSL.
    case untrusted(reason: String)
    /// The client has presented no certificate although one is required.
    case noCertificate

    // Errors of the handshake and the connection.

    /// The peer has sent an alert and ended the connection.
    case rejectedByPeer(TLSAlert)
    /// The peer is not using TLS.
    case notTLS
    /// The peers have no TLS version in common.
    case versionMismatch
    /// The peers have no cipher suite in common.
    case noCommonCipher
    /// The peers have no application protocol in common.
    case noCommonApplicationProtocol
    /// A client requests a server name that does not exist here or, with `nil`, requests no name.
    case unknownServerName(String?)
    /// The peer has violated the protocol, or bytes were modified in transit, as described by OpenSSL.
    case protocolViolation(reason: String)
    /// The time limit for the handshake has passed.
    case handshakeTimedOut(after: Duration)
    /// The peer has closed the connection during the handshake.
    case closedDuringHandshake
    /// The connection has ended without a closing notification from the peer, so bytes may be missing.
    case truncated
  }

  /// The cause of the error.
  public var cause: Cause
  /// The peer's name and address, or `nil` if they are unknown or there is no peer.
  public var peer: String?

  /// Creates an error.
  ///
  /// - Parameters:
  ///   - cause: The cause of the error.
  ///   - peer: The peer, if there is one.
  public init(_ cause: Cause, peer: String? = nil) {
    self.cause = cause
    self.peer = peer
  }
}

extension TLSError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String { peer.map { "TLS with \($0): \(cause.text)" } ?? "TLS: \(cause.text)" }
}

extension TLSError.Cause {
  fileprivate var text: String {
    switch self {
    case .libraryMissing(let text): text
    case .file(let path, let error): "\"\(path)\" cannot be read: \(error)"
    case .badCertificate(let source, let reason): "\(source) has no usable certificate in PEM (\(reason))"
    case .badKey(let source, let reason): "\(source) has no private key in PEM that the password opens (\(reason))"
    case .keyMismatch(let source): "the private key of \(source) belongs to another certificate"
    case .badPin(let text): "the pin \"\(text)\" is not the base64 of a SHA-256 digest"
    case .badApplicationProtocol(let name): "\"\(name)\" is not the name of an application protocol"
    case .badServerName(let name): "\"\(name)\" is neither a host name in ASCII nor a numeric address"
    case .noServerName: "the server's name is needed for an address without a host"
    case .noVersion: "the oldest version of the protocol is newer than the newest"
    case .alreadySecured: "the socket is secured already"
    case .wrongSide: "the context was made for the other end"
    case .outOfMemory: "there is no memory for the connection"
    case .expired: "a certificate has expired"
    case .notYetValid: "a certificate is not valid yet"
    case .wrongHost(let expected): "the certificate is not for \"\(expected)\""
    case .selfSigned: "the certificate is self-signed and not among the roots"
    case .unknownIssuer: "the certificate leads to no trusted root"
    case .wrongPurpose: "the certificate is for another purpose"
    case .badSignature: "a signature of the certificates is wrong"
    case .weak(let reason): "the certificates are too weak (\(reason))"
    case .pinMismatch: "no pin matches the public key"
    case .untrusted(let reason): "the certificate is not trusted (\(reason))"
    case .noCertificate: "the client has shown no certificate"
    case .rejectedByPeer(let alert): "the peer has ended the connection: \(alert)"
    case .notTLS: "what the peer sends is not TLS"
    case .versionMismatch: "the ends have no version of the protocol in common"
    case .noCommonCipher: "the ends have no cipher suite in common"
    case .noCommonApplicationProtocol: "the ends have no application protocol in common"
    case .unknownServerName(let name?): "there is no server named \"\(name)\""
    case .unknownServerName(nil): "the client has asked for no server by name"
    case .protocolViolation(let reason): "the peer has violated the protocol (\(reason))"
    case .handshakeTimedOut(let time): "the handshake has taken more than \(time)"
    case .closedDuringHandshake: "the peer has closed the connection during the handshake"
    case .truncated: "the connection was cut: it has ended without the peer's notification"
    }
  }
}

/// A TLS alert, which reports why a peer ends the connection.
public struct TLSAlert: Hashable, Sendable {
  /// The alert number, as in RFC 8446.
  public var number: UInt8

  /// Creates an alert from its number.
  public init(number: UInt8) { self.number = number }

  /// The peer has received a record that was modified in transit.
  public static let badRecord = TLSAlert(number: 20)
  /// The peers could not agree on parameters such as the cipher suite.
  public static let handshakeFailure = TLSAlert(number: 40)
  /// This end's certificate is malformed.
  public static let badCertificate = TLSAlert(number: 42)
  /// This end's certificate has expired.
  public static let certificateExpired = TLSAlert(number: 45)
  /// The peer rejects this end's certificate for another reason.
  public static let certificateUnknown = TLSAlert(number: 46)
  /// The peer does not trust the issuer of this end's certificate.
  public static let unknownIssuer = TLSAlert(number: 48)
  /// The peer does not support this TLS version.
  public static let protocolVersion = TLSAlert(number: 70)
  /// The server does not have the requested name.
  public static let unrecognizedName = TLSAlert(number: 112)
  /// The server requires a client certificate.
  public static let certificateRequired = TLSAlert(number: 116)
  /// The server supports none of the client's application protocols.
  public static let noApplicationProtocol = TLSAlert(number: 120)
}

extension TLSAlert: CustomStringConvertible {
  private static let names: [UInt8: String] = [
    10: "unexpected message", 20: "bad record MAC", 22: "record overflow", 40: "handshake failure",
    42: "bad certificate", 43: "unsupported certificate", 44: "certificate revoked", 45: "certificate expired",
    46: "certificate unknown", 47: "illegal parameter", 48: "unknown CA", 49: "access denied", 50: "decode error",
    51: "decrypt error", 70: "protocol version", 71: "insufficient security", 80: "internal error",
    86: "inappropriate fallback", 90: "user canceled", 109: "missing extension", 110: "unsupported extension",
    112: "unrecognized name", 113: "bad certificate status response", 115: "unknown PSK identity",
    116: "certificate required", 120: "no application protocol",
  ]

  /// The alert's name in RFC 8446, and its number.
  public var description: String { "\(Self.names[number] ?? "alert") (\(number))" }
}
