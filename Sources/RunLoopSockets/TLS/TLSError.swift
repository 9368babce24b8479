// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// The reason why a secured connection was not made, or has ended.
///
/// A socket reports it as ``SocketError/tls(_:)``. It names the peer where there is one, and contains no secrets:
/// neither keys nor passwords.
public struct TLSError: Error, Hashable, Sendable {
  /// The cause of an error.
  public enum Cause: Hashable, Sendable {
    // What can be wrong before a connection.

    /// OpenSSL 3 is not installed, or is not what it has to be; the text names the file, the reason and the package.
    case libraryMissing(String)
    /// The file of a certificate or key cannot be read.
    case file(path: String, SystemError)
    /// There is no certificate in PEM, or OpenSSL rejects it; with its origin and OpenSSL's reason.
    case badCertificate(source: String, reason: String)
    /// There is no private key in PEM that this password, or none, opens.
    case badKey(source: String, reason: String)
    /// The private key belongs to another certificate.
    case keyMismatch(source: String)
    /// The text is not the base64 of the 32 bytes of a SHA-256 digest.
    case badPin(String)
    /// The name of an application protocol has no bytes, or more than 255; or all of them have more than 65535.
    case badApplicationProtocol(String)
    /// The text is neither a host's name in ASCII nor a numeric address.
    case badServerName(String)
    /// A client connects to a Unix address or by a descriptor that is not of TCP, without the server's name.
    case noServerName
    /// The oldest version of the protocol is newer than the newest.
    case noVersion
    /// The socket is secured already.
    case alreadySecured
    /// The context was made for the other end.
    case wrongSide
    /// There is no memory for the connection.
    case outOfMemory

    // What can be wrong with the peer's certificate.

    /// The peer's certificate, or one that it depends on, has expired.
    case expired
    /// The peer's certificate, or one that it depends on, is not valid yet.
    case notYetValid
    /// The certificate is for other hosts.
    case wrongHost(expected: String)
    /// The peer has signed its certificate itself, and it is not among the roots.
    case selfSigned
    /// The certificate leads to no root that is trusted.
    case unknownIssuer
    /// The certificate is for another purpose, such as for servers where a client shows it.
    case wrongPurpose
    /// A signature in the chain is wrong.
    case badSignature
    /// A key or digest in the chain is too weak.
    case weak(reason: String)
    /// No pin is that of the peer's public key.
    case pinMismatch
    /// The certificate is not accepted for another reason, in OpenSSL's words.
    case untrusted(reason: String)
    /// The client has shown no certificate, although it has to.
    case noCertificate

    // What can go wrong between both ends.

    /// The peer has sent an alert: it ends the connection for the reason with this number.
    case rejectedByPeer(TLSAlert)
    /// What the peer sends is not TLS.
    case notTLS
    /// The ends have no version of the protocol in common.
    case versionMismatch
    /// The ends have no cipher suite in common.
    case noCommonCipher
    /// The ends have no application protocol in common.
    case noCommonApplicationProtocol
    /// A client asks for the name of a server that does not exist here, or, if it is nil, for no name.
    case unknownServerName(String?)
    /// The peer has violated the protocol, or the bytes have been changed on their way; in OpenSSL's words.
    case protocolViolation(reason: String)
    /// The handshake has taken too long.
    case handshakeTimedOut(after: Duration)
    /// The peer has closed the connection during the handshake.
    case closedDuringHandshake
    /// The connection has ended without the peer's notice that this is the end: bytes may be missing.
    case truncated
  }

  /// What was wrong.
  public var cause: Cause
  /// The peer: the server's name and the address; nil if it is not known or there is none.
  public var peer: String?

  /// Makes an error.
  ///
  /// - Parameters:
  ///   - cause: What was wrong.
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

/// The number of an alert, with which one end reports why it ends the connection.
public struct TLSAlert: Hashable, Sendable {
  /// The number, as in RFC 8446.
  public var number: UInt8

  /// Makes an alert of its number.
  public init(number: UInt8) { self.number = number }

  /// The peer has met a record that was changed on its way.
  public static let badRecord = TLSAlert(number: 20)
  /// The peer has no cipher suite or the like in common with this end.
  public static let handshakeFailure = TLSAlert(number: 40)
  /// This end's certificate is not in order.
  public static let badCertificate = TLSAlert(number: 42)
  /// This end's certificate has expired.
  public static let certificateExpired = TLSAlert(number: 45)
  /// The peer rejects this end's certificate for another reason.
  public static let certificateUnknown = TLSAlert(number: 46)
  /// The peer does not trust the issuer of this end's certificate.
  public static let unknownIssuer = TLSAlert(number: 48)
  /// The peer does not speak this version of the protocol.
  public static let protocolVersion = TLSAlert(number: 70)
  /// The server does not have the name that was asked for.
  public static let unrecognizedName = TLSAlert(number: 112)
  /// The server requires a certificate of the client.
  public static let certificateRequired = TLSAlert(number: 116)
  /// The server speaks none of the client's application protocols.
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

  /// The name of the alert in RFC 8446, and its number.
  public var description: String { "\(Self.names[number] ?? "alert") (\(number))" }
}
