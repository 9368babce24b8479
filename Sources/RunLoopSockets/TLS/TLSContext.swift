// SPDX-License-Identifier: Apache-2.0

import CRunLoopOpenSSL
import RunLoopLibC
import RunLoopCore

/// The TLS settings shared by connections: roots, keys, protocols, and sessions to resume.
///
/// Creating a context reads its files. Set it as ``Socket/Options/tls`` for any number of connections of any number of
/// sockets. Can be used from any thread. OpenSSL 3 is loaded when the first context is created.
public final class TLSContext: @unchecked Sendable {
  // Sendable: only the session tickets, which have a lock, change after initialization. OpenSSL locks its context.

  package let isServer: Bool
  /// The time limit for a handshake, or `nil` for none.
  let handshakeTimeout: Duration?

  let handle: OpaquePointer
  /// Whether the server's certificate must match its name.
  let checksName: Bool
  /// The session tickets for resuming clients' connections.
  let tickets: TLSTickets?

  /// Creates a context for clients.
  ///
  /// - Throws: A ``TLSError`` if the library cannot be loaded, or if a file, certificate, key, pin or application
  ///   protocol is not valid.
  public init(_ configuration: TLSConfiguration) throws(TLSError) {
    isServer = false
    handshakeTimeout = configuration.handshakeTimeout
    checksName = configuration.verification == .full
    handle = try Self.make(
      Settings(
        isServer: false, versions: (configuration.minimumVersion, configuration.maximumVersion),
        identity: configuration.identity, roots: configuration.verification == .pinsOnly ? [] : configuration.roots,
        pins: configuration.pins, asks: cos_require, checksChain: configuration.verification != .pinsOnly,
        protocols: configuration.applicationProtocols, resumes: configuration.resumesSessions))
    tickets = configuration.resumesSessions ? TLSTickets() : nil
  }

  /// Creates a context for servers.
  ///
  /// - Throws: A ``TLSError``, as for clients.
  public init(_ configuration: TLSServerConfiguration) throws(TLSError) {
    isServer = true
    handshakeTimeout = configuration.handshakeTimeout
    checksName = false
    tickets = nil
    let asks =
      switch configuration.clientVerification {
      case .none: cos_ask_nobody
      case .optional: cos_ask
      case .required: cos_require
      }
    var settings = Settings(
      isServer: true, versions: (configuration.minimumVersion, configuration.maximumVersion),
      identity: configuration.identity, roots: configuration.clientRoots, pins: [], asks: asks,
      checksChain: true, protocols: configuration.applicationProtocols, resumes: configuration.resumesSessions)
    let handle = try Self.make(settings)
    do throws(TLSError) {
      for (name, identity) in configuration.identities {
        guard TLSName.isPattern(name) else { throw TLSError(.badServerName(name)) }
        settings.identity = identity
        guard cos_context_add_name(handle, name, try Self.make(settings)) != 0 else { throw TLSError(.outOfMemory) }
      }
    } catch {
      cos_context_free(handle)
      throw error
    }
    if configuration.rejectsUnknownNames { cos_context_reject_other_names(handle) }
    self.handle = handle
  }

  deinit { cos_context_free(handle) }

  struct Settings {
    let isServer: Bool
    let versions: (oldest: TLSVersion, newest: TLSVersion)
    var identity: TLSIdentity?
    let roots: [TLSRoots]
    let pins: [String]
    let asks: Int
    let checksChain: Bool
    let protocols: [String]
    let resumes: Bool
  }

  private static func make(_ settings: Settings) throws(TLSError) -> OpaquePointer {
    guard settings.versions.oldest <= settings.versions.newest else { throw TLSError(.noVersion) }
    try TLSLibrary.open()
    let digests = try TLSPins.digests(settings.pins)
    let protocols = try protocolList(settings.protocols)
    guard
      let handle = cos_context_make(
        settings.isServer ? 1 : 0, settings.versions.oldest.number, settings.versions.newest.number)
    else { throw TLSError(.outOfMemory) }
    do throws(TLSError) {
      for roots in settings.roots { try trust(roots, handle) }
      if let identity = settings.identity { try identify(identity, handle) }
      guard
        cos_context_verify(
          handle, Int32(settings.asks), settings.checksChain ? 1 : 0, digests, digests.count / 32) != 0,
        cos_context_offer(handle, protocols, protocols.count) != 0
      else { throw TLSError(.outOfMemory) }
      cos_context_resume(handle, settings.resumes ? 1 : 0)
    } catch {
      cos_context_free(handle)
      throw error
    }
    return handle
  }

  /// Encodes names as a list, each preceded by a byte with its length.
  static func protocolList(_ names: [String]) throws(TLSError) -> [UInt8] {
    var list: [UInt8] = []
    for name in names {
      guard let length = UInt8(exactly: name.utf8.count), length > 0, list.count + name.utf8.count < 65_535 else {
        throw TLSError(.badApplicationProtocol(name))
      }
      list.append(length)
      list += name.utf8
    }
    return list
  }

  private static func trust(_ roots: TLSRoots, _ handle: OpaquePointer) throws(TLSError) {
    let (text, source): ([UInt8], String)
    switch roots {
    case .system:
      guard cos_context_trust_system(handle) == cos_added else {
        throw TLSError(.badCertificate(source: "the system", reason: lastReason))
      }
      return
    case .file(let path): (text, source) = (try TLSFile.read(path), "\"\(path)\"")
    case .pem(let bytes): (text, source) = (bytes, "the text of the roots")
    }
    guard cos_context_trust(handle, text, text.count) > 0 else {
      throw TLSError(.badCertificate(source: source, reason: lastReason))
    }
  }

  private static func identify(_ identity: TLSIdentity, _ handle: OpaquePointer) throws(TLSError) {
    let (chain, chainSource) = try text(of: identity.certificates, "the text of the certificate")
    var (key, keySource) = try text(of: identity.key, "the text of the key")
    // Erase the key's text from memory.
    defer { key.withUnsafeMutableBytes { cos_cleanse($0.baseAddress, $0.count) } }
    let answer = cos_context_identify(handle, chain, chain.count, key, key.count, identity.password)
    switch Int(answer) {
    case cos_added: return
    case cos_bad_key: throw TLSError(.badKey(source: keySource, reason: lastReason))
    case cos_other_key: throw TLSError(.keyMismatch(source: keySource))
    default: throw TLSError(.badCertificate(source: chainSource, reason: lastReason))
    }
  }

  private static func text(of source: TLSIdentity.Source, _ name: String) throws(TLSError) -> ([UInt8], String) {
    switch source {
    case .file(let path): (try TLSFile.read(path), "\"\(path)\"")
    case .pem(let bytes): (bytes, name)
    }
  }

  private static var lastReason: String { String(cString: cos_last_reason()) }
}

/// The OpenSSL library, loaded on first use.
enum TLSLibrary {
  static func open() throws(TLSError) {
    let message = String(unsafeUninitializedCapacity: 512) { buffer in
      buffer.withMemoryRebound(to: CChar.self) { text in
        guard let start = text.baseAddress, cos_open(start, text.count) != cos_opened else { return 0 }
        return strnlen(start, text.count)
      }
    }
    guard message.isEmpty else { throw TLSError(.libraryMissing(message)) }
  }
}
