// SPDX-License-Identifier: Apache-2.0

public import Foundation
import RunLoopCore
import RunLoopSockets

extension Stream.PropertyKey {
  /// The key of the `TLSContext` that secures the connection of
  /// `Stream.getStreamsToHost(withName:port:inputStream:outputStream:)`, with your own roots, pins or certificate.
  ///
  /// Setting it is sufficient, without `socketSecurityLevelKey`. Apple's systems have no such key.
  public static let tlsContextKey = Stream.PropertyKey(rawValue: "RunLoopTLSContext")

  /// The key of the name that the server's certificate must match, a string that defaults to the host's name.
  ///
  /// The corresponding setting on Apple's systems is `kCFStreamSSLPeerName`.
  public static let tlsServerNameKey = Stream.PropertyKey(rawValue: "RunLoopTLSServerName")

  /// The key of Apple's dictionary of settings, which is not available in Foundation on Linux.
  fileprivate static let sslSettings = Stream.PropertyKey(rawValue: "kCFStreamPropertySSLSettings")
}

/// The reason that a stream's connection cannot be secured as its properties request, and is not established.
public enum StreamSecurityError: Error, Hashable, Sendable {
  /// A security level that is no longer supported or is unknown, such as `StreamSocketSecurityLevel.ssLv3`.
  case unsupportedLevel(String)
  /// A setting that is unknown or has an unexpected type of value, such as `kCFStreamSSLCertificates`.
  case unsupportedSetting(String)
}

extension StreamSecurityError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .unsupportedLevel(let level):
      "the level of security \"\(level)\" is not supported: use StreamSocketSecurityLevel.negotiatedSSL"
    case .unsupportedSetting(let name):
      "the setting \"\(name)\" of a stream's security is not supported with this value: use tlsContextKey"
    }
  }
}

/// The security settings of the connection of two streams, according to their properties.
///
/// Unsupported settings are recorded, and keep the connection from being established: programs often ignore the result
/// of setting a property, and would continue without security.
struct StreamSecurity {
  private var isSecured = false
  private var given: TLSContext?
  private var serverName: String?
  private var checksChain = true
  private var checksName = true
  private var rejections: [String: any Error] = [:]

  /// Sets a property, or returns false if it is not a security property or is not supported.
  mutating func set(_ property: AnyObject?, _ key: Stream.PropertyKey) -> Bool {
    switch key {
    case .socketSecurityLevelKey: setLevel(property, key.rawValue)
    case .sslSettings: setAll(property)
    case .tlsServerNameKey: setName(property, key.rawValue)
    case .tlsContextKey: setContext(property)
    default: false
    }
  }

  private mutating func setContext(_ property: AnyObject?) -> Bool {
    let name = Stream.PropertyKey.tlsContextKey.rawValue
    rejections[name] = nil
    given = property as? TLSContext
    if let given {
      if given.isServer { rejections[name] = TLSError(.wrongSide) }
      isSecured = true
    } else if property != nil {
      rejections[name] = StreamSecurityError.unsupportedSetting(name)
    }
    return rejections[name] == nil
  }

  private mutating func setLevel(_ value: Any?, _ name: String) -> Bool {
    rejections[name] = nil
    let level = value as? StreamSocketSecurityLevel ?? (value as? String).map(StreamSocketSecurityLevel.init(rawValue:))
    switch level {
    case StreamSocketSecurityLevel.none?: isSecured = false
    case .negotiatedSSL?, .tlSv1?: isSecured = true
    case let other:
      isSecured = true
      rejections[name] = StreamSecurityError.unsupportedLevel(other?.rawValue ?? "\(value ?? "nil")")
    }
    return rejections[name] == nil
  }

  private mutating func setName(_ value: Any?, _ name: String) -> Bool {
    rejections[name] = nil
    switch value {
    case let text as String: serverName = text
    case nil: serverName = nil
    default: rejections[name] = StreamSecurityError.unsupportedSetting(name)
    }
    return rejections[name] == nil
  }

  private mutating func setAll(_ property: AnyObject?) -> Bool {
    let name = Stream.PropertyKey.sslSettings.rawValue
    rejections[name] = nil
    guard let settings = property as? [String: Any] else {
      isSecured = true
      rejections[name] = StreamSecurityError.unsupportedSetting(name)
      return false
    }
    isSecured = true
    return settings.map { set($0.value, setting: $0.key) }.allSatisfy { $0 }
  }

  private mutating func set(_ value: Any, setting name: String) -> Bool {
    rejections[name] = nil
    switch (name, value) {
    case ("kCFStreamSSLLevel", _), (Stream.PropertyKey.socketSecurityLevelKey.rawValue, _): return setLevel(value, name)
    case ("kCFStreamSSLPeerName", is NSNull): checksName = false
    case ("kCFStreamSSLPeerName", let text as String): serverName = text
    case ("kCFStreamSSLValidatesCertificateChain", let isOn as Bool): checksChain = isOn
    case ("kCFStreamSSLIsServer", let isOn as Bool) where !isOn: break
    default: rejections[name] = StreamSecurityError.unsupportedSetting(name)
    }
    return rejections[name] == nil
  }

  /// Whether a property already has a value.
  func has(_ property: AnyObject?, _ key: Stream.PropertyKey) -> Bool {
    var other = self
    return other.set(property, key) && other.isSecured == isSecured && other.given === given
      && other.serverName == serverName && other.checksChain == checksChain && other.checksName == checksName
  }

  func value(of key: Stream.PropertyKey) -> AnyObject? {
    switch key {
    case .socketSecurityLevelKey:
      NSString(string: (isSecured ? StreamSocketSecurityLevel.negotiatedSSL : StreamSocketSecurityLevel.none).rawValue)
    case .tlsServerNameKey: serverName.map { NSString(string: $0) }
    case .tlsContextKey: given
    default: nil
    }
  }

  /// Returns the name that the server's certificate must match.
  func name(host: String) -> String { serverName ?? host }

  /// Returns the context that secures the connection, or nil if no security was requested.
  ///
  /// - Throws: An error for an unsupported setting, or if a context cannot be created, for example without the library.
  func context() throws -> TLSContext? {
    if let rejection = rejections.min(by: { $0.key < $1.key })?.value { throw rejection }
    guard isSecured else { return nil }
    return try given ?? Self.contexts.context(checksChain: checksChain, checksName: checksName)
  }

  private static let contexts = Contexts()

  /// The shared contexts of connections without their own.
  ///
  /// Creating one reads all of the system's root certificates, and sharing it lets connections resume sessions.
  private final class Contexts: @unchecked Sendable {
    // Sendable: the lock guards the variable.
    private let lock = NSLock()
    private var made: [[Bool]: TLSContext] = [:]

    func context(checksChain: Bool, checksName: Bool) throws -> TLSContext {
      lock.lock()
      defer { lock.unlock() }
      if let context = made[[checksChain, checksName]] { return context }
      var configuration = TLSConfiguration()
      configuration.verification = !checksChain ? .pinsOnly : checksName ? .full : .withoutName
      let context = try TLSContext(configuration)
      made[[checksChain, checksName]] = context
      return context
    }
  }
}
