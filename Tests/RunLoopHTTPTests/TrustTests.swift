// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopSockets
import TestSupport
import Testing

@testable import RunLoopHTTP

/// Pins within a chain, decisions by the program, and TLS versions.
@Suite(.enabled(if: TLSFiles.canBeMade), .timeLimit(.minutes(20))) struct TrustTests {
  private static func server(
    _ name: String = "server", _ change: (inout TLSServerConfiguration) -> Void = { _ in }
  ) throws -> LyingServer {
    var configuration = TLSServerConfiguration(
      identity: TLSIdentity(certificateFile: TLSFiles.path("\(name).pem"), keyFile: TLSFiles.path("\(name).key")))
    change(&configuration)
    return try LyingServer(tls: configuration) { $0.answer("hello") }
  }

  private func outcome(
    _ server: LyingServer, host: String = "127.0.0.1", _ change: (inout HTTP.Trust) -> Void
  ) async throws -> String {
    try await withClient {
      $0.trust.roots = TLSFiles.path("ca.pem")
      $0.hostOverrides = ["a.example": "127.0.0.1", "elsewhere.example": "127.0.0.1"]
      change(&$0.trust)
    } _: { client in
      await end(client, HTTP.Request(server.url(host: host)))
    }
  }

  @Test("a pin may match an authority above the server if the chain is trusted")
  func authorities() async throws {
    let (server, below) = (try Self.server(), try Self.server("chain"))
    let root = TLSFiles.pin("ca")
    #expect(try await outcome(server) { $0.pins = [root] } == "200 hello")
    #expect(try await outcome(below) { $0.pins = [root] } == "200 hello")
    #expect(try await outcome(below) { $0.pins = [TLSFiles.pin("server")] } == "pinMismatch")
    #expect(try await outcome(server) { $0.pins = ["", "sha256//", "none", String(root.dropLast())] } == "pinMismatch")
    // An authority that is sent with a chain that does not lead to it has no effect.
    #expect(
      try await outcome(Self.server("unknown")) {
        $0.pins = [root]
        $0.allowsInvalidCertificates = true
      } == "pinMismatch")
    #expect(try await outcome(Self.server("elsewhere")) { $0.pins = [root] } == "untrusted")
    #expect(try await outcome(Self.server("expired")) { $0.pins = [root] } == "untrusted")
  }

  @Test("the program sees the result of the usual check, and may override it in both directions")
  func decisions() async throws {
    let seen = Box<[HTTP.ServerTrust]>([])
    @Sendable func take(_ answer: Bool) -> @Sendable (HTTP.ServerTrust) -> Bool {
      { trust in
        seen.update { $0.append(trust) }
        return answer
      }
    }
    let server = try Self.server()
    #expect(try await outcome(server, host: "a.example") { $0.evaluate = take(true) } == "200 hello")
    #expect(try await outcome(server) { $0.evaluate = take(false) } == "untrusted")
    #expect(try await outcome(Self.server("chain")) { $0.evaluate = take(true) } == "200 hello")
    for name in ["self", "elsewhere", "expired", "unknown", "wide"] {
      #expect(try await outcome(Self.server(name)) { $0.evaluate = take(true) } == "200 hello", "\(name)")
    }
    let trusts = seen.value
    #expect(trusts.map(\.host) == ["a.example"] + [String](repeating: "127.0.0.1", count: 7))
    #expect(trusts.map(\.isTrusted) == [true, true, true, false, false, false, false, false])
    #expect(trusts.map(\.matchesHost) == [true, true, true, true, false, true, true, false])
    #expect(trusts.map { $0.chainError == nil } == [true, true, true, false, true, false, false, true])
    #expect(trusts.map(\.certificates.count) == [2, 2, 3, 1, 2, 2, 1, 2])
    #expect(trusts[0].pins == [TLSFiles.pin("server"), TLSFiles.pin("ca")])
    // Pins are checked in addition to the program's decision.
    #expect(
      try await outcome(server) {
        $0.evaluate = take(true)
        $0.pins = [TLSFiles.pin("self")]
      } == "pinMismatch")
  }

  @Test("a chain is verified with the program's anchors, which need not be roots")
  func anchors() async throws {
    let found = Box<HTTP.ServerTrust?>(nil)
    func shown(_ name: String, roots: String = "ca") async throws -> HTTP.ServerTrust {
      let end = try await outcome(Self.server(name)) {
        $0.roots = TLSFiles.path("\(roots).pem")
        $0.evaluate = { trust in
          found.value = trust
          return true
        }
      }
      #expect(end == "200 hello")
      return try #require(found.value)
    }
    let chain = try await shown("chain")
    let (own, between, root) = (chain.certificates[0], chain.certificates[1], chain.certificates[2])
    let lone = try await shown("self")
    for anchor in [own, between, root] { #expect(chain.isChainTrusted(by: [anchor])) }
    #expect(!chain.isChainTrusted(by: lone.certificates) && !chain.isChainTrusted(by: []))
    #expect(chain.isChainTrusted(by: lone.certificates + [root]))
    #expect(!chain.isChainTrusted(by: [root, [1, 2, 3]]) && !chain.isChainTrusted(by: [root + [0]]))
    #expect(!chain.isChainTrusted(by: [[]]) && !chain.isChainTrusted(by: [Array(root.dropLast())]))
    #expect(lone.isChainTrusted(by: lone.certificates))
    let expired = try await shown("expired")
    #expect(!expired.isChainTrusted(by: [root]))
    #expect(HTTP.ServerTrust.pin(of: root) == TLSFiles.pin("ca") && HTTP.ServerTrust.pin(of: [1]) == nil)
  }

  @Test("trust is decided once for each connection, and connections of other configurations are not shared")
  func sharing() async throws {
    let server = try Self.server()
    let count = Counter()
    var configuration = HTTP.Configuration()
    configuration.trust.roots = TLSFiles.path("ca.pem")
    let client = HTTP.Client(configuration)
    func end(_ change: (inout HTTP.Trust) -> Void) async throws -> String {
      var own = configuration
      change(&own.trust)
      let outcome = TaskOutcome<(HTTP.Body, HTTP.Response)>()
      let transfer = Transfer(
        client.core, HTTP.Request(server.url()), MemoryReceiver { outcome.finish($0) },
        configuration: OwnConfiguration(own))
      #expect(client.core.begin(transfer) == nil)
      do { return try await outcome.value().0.text ?? "" } catch let error as HTTP.Error { return error.code.name }
    }
    #expect(try await end { _ in } == "hello")
    #expect(try await end { $0.pins = [TLSFiles.pin("self")] } == "pinMismatch")
    #expect(try await end { $0.evaluate = { _ in false } } == "untrusted")
    #expect(try await end { $0.pins = [TLSFiles.pin("ca")] } == "hello")
    #expect(try await end { $0.pins = [TLSFiles.pin("ca")] } == "hello")
    #expect(try await end { _ in } == "hello")
    for _ in 0..<3 {
      #expect(
        try await end {
          $0.evaluationKey = "same"
          $0.evaluate = { _ in count.add() > 0 }
        } == "hello")
    }
    #expect(count.value == 1)
    client.stop()
    _ = await client.finished()
  }

  @Test("an older TLS version than the client requires is an error", arguments: [TLSVersion.tls12, .tls13])
  func versions(_ version: TLSVersion) async throws {
    let server = try Self.server { $0.maximumVersion = version }
    #expect(try await outcome(server) { $0.minimumVersion = .tls12 } == "200 hello")
    let expected = version == .tls13 ? "200 hello" : "tlsFailed"
    #expect(try await outcome(server) { $0.minimumVersion = .tls13 } == expected)
  }

  @Test("the program's decision is not skipped if it cannot be requested")
  func proxies() async throws {
    try await withClient {
      $0.trust.evaluate = { _ in true }
      $0.proxy = .url("https://127.0.0.1:1")
    } _: { client in
      #expect(await end(client, HTTP.Request("https://127.0.0.1:1/")) == "tlsFailed")
      // Without TLS there is nothing to decide.
      #expect(await end(client, HTTP.Request("http://127.0.0.1:1/")) == "proxyFailed")
    }
  }
}
