// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopSockets
import TestSupport
import Testing

@testable import RunLoopHTTP
@testable import RunLoopURLConnection

@Suite("AFNetworking's security policy", .enabled(if: TLSFiles.canBeMade), .timeLimit(.minutes(20)))
struct SecurityPolicyTests {
  private static func server(_ name: String) throws -> LyingServer {
    let identity = TLSIdentity(certificateFile: TLSFiles.path("\(name).pem"), keyFile: TLSFiles.path("\(name).key"))
    return try LyingServer(tls: TLSServerConfiguration(identity: identity)) { $0.answer("hello") }
  }

  /// Returns a certificate in DER.
  private static func certificate(_ name: String) throws -> Data {
    let text = String(decoding: TLSFiles.text("\(name).pem"), as: UTF8.self)
    let lines = text.split(separator: "\n")
    let body = lines[1..<(try #require(lines.firstIndex(of: "-----END CERTIFICATE-----")))].joined()
    return try #require(Data(base64Encoded: body))
  }

  /// Whether an operation gets its response.
  private func trusts(
    _ server: LyingServer, _ mode: AFSSLPinningMode, _ pinned: String..., roots: Bool = true,
    _ change: (inout AFSecurityPolicy) -> Void = { _ in }
  ) async throws -> Bool {
    var policy = AFSecurityPolicy(pinningMode: mode)
    policy.pinnedCertificates = try pinned.map(Self.certificate)
    if roots { policy.trust.roots = TLSFiles.path("ca.pem") }
    change(&policy)
    let request = URLRequest(url: try #require(URL(string: server.url())))
    let operation = AFHTTPRequestOperation(request: request)
    operation.securityPolicy = policy
    operation.start()
    await withCheckedContinuation { continuation in operation.whenFinished { continuation.resume() } }
    if operation.responseString == "hello" { return true }
    #expect((operation.error as? URLError)?.code == .serverCertificateUntrusted)
    return false
  }

  @Test("a pinned certificate or key may be any of the chain", arguments: [AFSSLPinningMode.publicKey, .certificate])
  func chains(_ mode: AFSSLPinningMode) async throws {
    let server = try Self.server("chain")
    for name in ["below", "between", "ca"] { #expect(try await trusts(server, mode, name), "\(name)") }
    #expect(try await trusts(server, mode, "self", "between"))
    #expect(try await !trusts(server, mode, "self"))
    #expect(try await !trusts(server, mode))
    #expect(try await trusts(server, .none))
    // A pinned chain must be trusted.
    #expect(try await !trusts(server, mode, "ca", roots: false))
  }

  @Test("an untrusted certificate is accepted if it is pinned", arguments: [AFSSLPinningMode.publicKey, .certificate])
  func invalid(_ mode: AFSSLPinningMode) async throws {
    let (lone, chain) = (try Self.server("self"), try Self.server("chain"))
    func trusts(_ server: LyingServer, _ pinned: String) async throws -> Bool {
      try await self.trusts(server, mode, pinned, roots: false) { $0.allowInvalidCertificates = true }
    }
    #expect(try await trusts(lone, "self"))
    #expect(try await !trusts(lone, "server"))
    #expect(try await trusts(chain, "below"))
    #expect(try await trusts(chain, "between"))
    #expect(try await !trusts(chain, "other"))
  }

  @Test("names are validated unless the policy disables it, and a name alone is not enough without pins")
  func names() async throws {
    let elsewhere = try Self.server("elsewhere")
    #expect(try await !trusts(elsewhere, .none))
    #expect(try await trusts(elsewhere, .none) { $0.validatesDomainName = false })
    #expect(try await !trusts(elsewhere, .certificate, "ca"))
    #expect(try await trusts(elsewhere, .certificate, "ca") { $0.validatesDomainName = false })
    let lone = try Self.server("self")
    // As with AFNetworking.
    #expect(try await !trusts(lone, .none) { $0.allowInvalidCertificates = true })
    #expect(
      try await trusts(lone, .none) {
        $0.allowInvalidCertificates = true
        $0.validatesDomainName = false
      })
    #expect(try await !trusts(lone, .none) { $0.validatesDomainName = false })
  }

  @Test("operations with the same policy share a connection, and others do not")
  func sharing() async throws {
    // In a separate process, because connections of other tests may replace the idle one.
    await #expect(processExitsWith: .success) {
      let tests = SecurityPolicyTests()
      let server = try SecurityPolicyTests.server("server")
      for _ in 0..<3 {
        guard try await tests.trusts(server, .certificate, "ca") else { exit(2) }
      }
      guard server.accepted.value == 1 else { exit(3) }
      guard try await !tests.trusts(server, .certificate, "self"), try await tests.trusts(server, .publicKey, "ca")
      else { exit(4) }
      guard server.accepted.value == 3 else { exit(5) }
    }
  }

  @Test("a program's decision is requested besides the policy, and invalid certificates pin nothing")
  func decisions() async throws {
    let server = try Self.server("server")
    #expect(try await !trusts(server, .certificate, "ca") { $0.trust.evaluate = { _ in false } })
    #expect(try await trusts(server, .certificate, "ca") { $0.trust.evaluate = { _ in true } })
    for mode in [AFSSLPinningMode.certificate, .publicKey] {
      #expect(try await !trusts(server, mode) { $0.pinnedCertificates = [Data([1, 2, 3]), Data()] })
    }
  }
}
