// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

extension TLSFiles {
  /// Whether the certificates and OpenSSL are available; otherwise tests are disabled.
  static let isAvailable = canBeMade && (try? TLSLibrary.open()) != nil

  static func identity(_ name: String) -> TLSIdentity {
    TLSIdentity(certificateFile: path("\(name).pem"), keyFile: path("\(name).key"))
  }
}

extension TLSContext {
  /// Returns a context for clients that trust the tests' root.
  static func client(_ change: (inout TLSConfiguration) -> Void = { _ in }) throws -> TLSContext {
    var configuration = TLSConfiguration()
    configuration.roots = [.file(TLSFiles.path("ca.pem"))]
    change(&configuration)
    return try TLSContext(configuration)
  }

  /// Returns a context for a server with one of the tests' certificates.
  static func server(
    _ name: String = "server", _ change: (inout TLSServerConfiguration) -> Void = { _ in }
  ) throws -> TLSContext {
    var configuration = TLSServerConfiguration(identity: TLSFiles.identity(name))
    change(&configuration)
    return try TLSContext(configuration)
  }
}

/// Both ends of a TLS connection in memory.
final class TLSEnds {
  let client: TLSSession
  let server: TLSSession
  /// The plain bytes that each end has received.
  var clientGot: [UInt8] = []
  var serverGot: [UInt8] = []
  /// The number of bytes moved at a time, and the size of the buffer for plain bytes.
  var chunk = 64 * 1024
  var room = 64 * 1024
  /// Transforms bytes on their way to the server.
  var change: ([UInt8]) -> [UInt8] = { $0 }

  init(_ client: TLSContext, _ server: TLSContext, name: String? = "localhost") throws {
    self.client = try TLSSession(client, serverName: name)
    self.server = try TLSSession(server)
    self.client.start()
    self.server.start()
  }

  /// Moves bytes in both directions until none are left.
  func run() {
    while client.hasOutput || server.hasOutput {
      serverGot += move(from: client, to: server, change)
      clientGot += move(from: server, to: client) { $0 }
    }
  }

  private func move(from: TLSSession, to: TLSSession, _ change: ([UInt8]) -> [UInt8]) -> [UInt8] {
    let bytes = change(from.withOutput { Array($0.prefix(chunk)) })
    from.sent(min(from.outputCount, chunk))
    return give(bytes, to: to)
  }

  /// Passes encrypted bytes to an end, and returns the plain bytes.
  func give(_ bytes: [UInt8], to session: TLSSession) -> [UInt8] {
    var plain = [UInt8](repeating: 0, count: room)
    let count = bytes.withUnsafeBytes { bytes in plain.withUnsafeMutableBytes { session.receive(bytes, into: $0) } }
    var result = Array(plain[..<count])
    while session.plain.count > 0 {
      let count = plain.withUnsafeMutableBytes { session.takePlain(into: $0) }
      result += plain[..<count]
    }
    return result
  }

  /// Writes bytes, and moves them until the other end has received all.
  func write(_ bytes: [UInt8], from session: TLSSession) {
    var rest = bytes[...]
    while !rest.isEmpty, session.state.writes {
      rest = rest.dropFirst(rest.withUnsafeBytes { session.write($0) })
      run()
    }
  }

  /// Short descriptions of both ends' failures.
  var outcome: String { "\(word(client)) \(word(server))" }

  private func word(_ session: TLSSession) -> String {
    switch session.state.phase {
    case .handshaking: "handshaking"
    case .open: session.state.hasEnded ? "ended" : "open"
    case .failed(let cause): cause.word
    }
  }
}

extension TLSError.Cause {
  /// A short description of the cause.
  var word: String {
    switch self {
    case .rejectedByPeer(let alert): "alert\(alert.number)"
    case .protocolViolation: "violation"
    case .badCertificate: "badCertificate"
    case .badKey: "badKey"
    case .keyMismatch: "keyMismatch"
    case .weak: "weak"
    default: "\(self)"
    }
  }
}

/// Returns a short description of the TLS error that a body throws.
func tlsFailure(_ body: () throws -> Void) -> String {
  do {
    try body()
    return "nothing"
  } catch let error as TLSError {
    return error.cause.word
  } catch SocketError.tls(let error) {
    return error.cause.word
  } catch {
    return "\(error)"
  }
}
