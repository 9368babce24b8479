// SPDX-License-Identifier: Apache-2.0

public import Foundation
import RunLoopCore
import RunLoopSockets

extension Stream.PropertyKey {
  /// The `TLSContext` with which the streams of `Stream.getStreamsToHost(withName:port:inputStream:outputStream:)`
  /// secure their connection: with roots, pins or a certificate of your own.
  ///
  /// Setting it is enough: `socketSecurityLevelKey` need not be set. There is no such key on Apple's systems.
  public static let tlsContextKey = Stream.PropertyKey(rawValue: "RunLoopTLSContext")

  /// The name that the server's certificate has to be for, a string; by default the host that is connected to.
  ///
  /// The corresponding setting on Apple's systems is `kCFStreamSSLPeerName`.
  public static let tlsServerNameKey = Stream.PropertyKey(rawValue: "RunLoopTLSServerName")

  /// The dictionary of settings that Apple's systems have, which is not available in Foundation on Linux.
  fileprivate static let sslSettings = Stream.PropertyKey(rawValue: "kCFStreamPropertySSLSettings")
}

/// The reason why a stream's connection is not made: it cannot be secured as its properties ask.
public enum StreamSecurityError: Error, Hashable, Sendable {
  /// A level of security that is no longer supported, or not known, such as `StreamSocketSecurityLevel.ssLv3`.
  case unsupportedLevel(String)
  /// A setting, by its name, that is not known here or has a value of another kind, such as `kCFStreamSSLCertificates`.
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

/// How the connection of two streams is to be secured, as their properties say.
///
/// What cannot be done is noted, and keeps the connection from being made: programs do not look at what setting a
/// property returns, and would go on without security.
struct StreamSecurity {
  private var isSecured = false
  private var given: TLSContext?
  private var serverName: String?
  private var checksChain = true
  private var checksName = true
  private var rejections: [String: any Error] = [:]

  /// Sets a property; false: it is none of security, or cannot be had.
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

  /// Whether a property has this value already.
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

  /// The name that the server has to have.
  func name(host: String) -> String { serverName ?? host }

  /// What secures the connection; nil: nothing does.
  ///
  /// - Throws: What cannot be had, and what keeps a context from being made, such as a library that is missing.
  func context() throws -> TLSContext? {
    if let rejection = rejections.min(by: { $0.key < $1.key })?.value { throw rejection }
    guard isSecured else { return nil }
    return try given ?? Self.contexts.context(checksChain: checksChain, checksName: checksName)
  }

  private static let contexts = Contexts()

  /// The contexts of connections that have none of their own: making one reads all of the system's roots, and one
  /// connection resumes another.
  private final class Contexts: @unchecked Sendable {
    // Sendable: guarded by the lock.
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
