// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopSockets
import RunLoopThreads
import TestSupport
import Testing

@testable import RunLoopHTTP

/// TLS connections to servers of every kind.
@Suite(.enabled(if: TLSFiles.canBeMade), .timeLimit(.minutes(20))) struct SecurityTests {
  private static func identity(_ name: String) -> TLSIdentity {
    TLSIdentity(certificateFile: TLSFiles.path("\(name).pem"), keyFile: TLSFiles.path("\(name).key"))
  }

  private static func server(
    _ name: String = "server", _ change: (inout TLSServerConfiguration) -> Void = { _ in },
    _ respond: @escaping @Sendable (LyingServer.Exchange) -> Void = { $0.answer("hello") }
  ) throws -> LyingServer {
    var configuration = TLSServerConfiguration(identity: identity(name))
    change(&configuration)
    return try LyingServer(tls: configuration, respond)
  }

  private func outcome(
    _ server: LyingServer, _ path: String = "/", method: HTTP.Method = .get, body: HTTP.Content? = nil,
    _ change: (inout HTTP.Trust) -> Void = { _ in }
  ) async throws -> String {
    try await withClient {
      $0.trust.roots = TLSFiles.path("ca.pem")
      change(&$0.trust)
    } _: { client in
      await end(client, HTTP.Request(method, server.url(path), body: body))
    }
  }

  @Test("a valid certificate is trusted, whatever its kind", arguments: ["server", "chain", "rsa"])
  func good(_ name: String) async throws { #expect(try await outcome(Self.server(name)) == "200 hello") }

  @Test(
    "an invalid certificate is rejected, whatever is wrong with it, unless a test accepts it",
    arguments: ["expired", "future", "elsewhere", "unknown", "self", "below", "wide", "usage", "onlycommon"])
  func bad(_ name: String) async throws {
    let server = try Self.server(name)
    #expect(try await outcome(server) == "untrusted")
    #expect(try await outcome(server) { $0.allowsInvalidCertificates = true } == "200 hello")
  }

  @Test("a server that floods the client with frames without effect loses the connection")
  func flood() async throws {
    let server = try Self.server {
      $0.applicationProtocols = ["h2"]
    } _: { exchange in
      // As many PRIORITY frames as fit into a record.
      let frames = Array(repeatElement([0, 0, 5, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 15] as [UInt8], count: 1000).joined())
      for _ in 0..<2500 { exchange.send(frames) }
    }
    #expect(try await outcome(server) == "badServerResponse")
  }

  @Test("without custom roots a client does not trust the test's, and with an invalid file it trusts no server")
  func roots() async throws {
    let server = try Self.server()
    #expect(try await outcome(server) { $0.roots = nil } == "untrusted")
    #expect(try await outcome(server) { $0.roots = TLSFiles.path("none.pem") } == "untrusted")
    #expect(try await outcome(server) { $0.roots = TLSFiles.path("server.key") } == "untrusted")
  }

  @Test("custom roots replace the system's, including those in a directory")
  func systemRoots() async throws {
    let server = try Self.server()
    let thread = try ResidentThread(name: "roots")
    let (directory, loop) = (TLSFiles.path("system"), thread.runLoop)
    // An unprivileged user may not do this, and some containers forbid it.
    guard try await thread.run({ replaceSystemRoots(by: directory) }) else {
      thread.stop()
      return
    }
    func outcome(_ roots: String?) async -> String {
      var configuration = HTTP.Configuration()
      configuration.trust.roots = roots
      let client = HTTP.Client(configuration, on: loop)
      let outcome = await end(client, HTTP.Request(server.url()))
      client.stop()
      _ = await client.finished()
      return outcome
    }
    // Only if libcurl knows the directory.
    if await outcome(nil) == "200 hello" { #expect(await outcome(TLSFiles.path("other.pem")) == "untrusted") }
    #expect(await outcome(TLSFiles.path("ca.pem")) == "200 hello")
    thread.stop()
  }

  @Test("one of the pins must match the server's key, even if any certificate is accepted")
  func pins() async throws {
    let server = try Self.server()
    let (own, other) = (TLSFiles.pin("server"), TLSFiles.pin("self"))
    #expect(try await outcome(server) { $0.pins = [own] } == "200 hello")
    #expect(try await outcome(server) { $0.pins = [other, own] } == "200 hello")
    #expect(try await outcome(server) { $0.pins = [other] } == "pinMismatch")
    #expect(
      try await outcome(server) {
        $0.pins = [other]
        $0.allowsInvalidCertificates = true
      } == "pinMismatch")
    #expect(try await outcome(Self.server("unknown")) { $0.pins = [own] } == "untrusted")
  }

  @Test("a server that requires a certificate reports that, and receives it", arguments: [TLSVersion.tls12, .tls13])
  func clientCertificates(_ version: TLSVersion) async throws {
    let server = try Self.server("server") {
      $0.maximumVersion = version
      $0.clientVerification = .required
      $0.clientRoots = [.file(TLSFiles.path("ca.pem"))]
    }
    #expect(try await outcome(server) == "clientCertificateRequired")
    #expect(try await outcome(server, method: .post, body: .bytes(pattern(100_000))) == "clientCertificateRequired")
    let certificate = HTTP.Trust.Certificate(chain: TLSFiles.path("client.pem"), key: TLSFiles.path("client.key"))
    #expect(try await outcome(server) { $0.certificate = certificate } == "200 hello")
    let mixed = HTTP.Trust.Certificate(chain: TLSFiles.path("client.pem"), key: TLSFiles.path("server.key"))
    #expect(try await outcome(server) { $0.certificate = mixed } == "tlsFailed")
  }

  @Test("a key with a password is decrypted with it, and the password appears in no text")
  func lockedKey() async throws {
    let server = try Self.server("server") {
      $0.clientVerification = .required
      $0.clientRoots = [.file(TLSFiles.path("ca.pem"))]
    }
    let locked = HTTP.Trust.Certificate(
      chain: TLSFiles.path("locked.pem"), key: TLSFiles.path("locked.key"), password: "sesame")
    #expect(!"\(locked)".contains("sesame"))
    #expect(!String(reflecting: locked).contains("sesame"))
    #expect(try await outcome(server) { $0.certificate = locked } == "200 hello")
    let wrong = HTTP.Trust.Certificate(chain: locked.chain, key: locked.key, password: "open")
    #expect(try await outcome(server) { $0.certificate = wrong } == "tlsFailed")
  }

  @Test(
    "bad encrypted chunks are detected, with or without close_notify", arguments: ["zz\r\n", "5\r\nhel"])
  func chunks(_ rest: String) async throws {
    let server = try Self.server("server", { _ in }) { exchange in
      exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n" + rest)
      if exchange.path == "/cut" { exchange.cut() } else { exchange.end() }
    }
    let expected = rest.hasPrefix("zz") ? "badServerResponse" : "connectionLost"
    #expect(try await outcome(server, "/cut") == expected)
    #expect(try await outcome(server, "/end") == expected)
  }

  @Test("a body that ends with the connection must end with the server's close_notify alert")
  func cutBodies() async throws {
    let server = try Self.server("server", { _ in }) { exchange in
      exchange.send("HTTP/1.1 200 OK\r\n\(exchange.path == "/length" ? "Content-Length: 5\r\n" : "")\r\nhello")
      if exchange.path == "/cut" { exchange.cut() } else { exchange.end() }
    }
    #expect(try await outcome(server, "/whole") == "200 hello")
    #expect(try await outcome(server, "/length") == "200 hello")
    try await withClient {
      $0.trust.roots = TLSFiles.path("ca.pem")
    } _: { client in
      do {
        _ = try await client.data(for: HTTP.Request(server.url("/cut")))
        Issue.record("there is an answer")
      } catch let error as HTTP.Error {
        #expect(error.code == .connectionLost)
        #expect(error.bytesReceived == 5)
      }
    }
  }

  @Test("encrypted bytes after the end of a response are not taken for the next response")
  func strayBytes() async throws {
    let server = try Self.server("server", { _ in }) { exchange in
      // They arrive together: bytes that arrive when the next request is sent cannot be distinguished from its
      // response.
      let stray = exchange.path == "/stray" ? "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil" : ""
      exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" + stray)
    }
    try await withClient {
      $0.trust.roots = TLSFiles.path("ca.pem")
    } _: { client in
      for _ in 0..<3 {
        #expect(await end(client, HTTP.Request(server.url("/stray"))) == "200 hello")
        #expect(await end(client, HTTP.Request(server.url("/next"))) == "200 hello")
      }
    }
  }

  @Test("one encrypted connection serves consecutive requests")
  func keeping() async throws {
    let server = try Self.server()
    try await withClient {
      $0.trust.roots = TLSFiles.path("ca.pem")
    } _: { client in
      #expect(
        await ends(client, HTTP.Request(server.url()), times: 5) == [String](repeating: "200 hello", count: 5))
    }
    #expect(server.accepted.value == 1)
  }

  @Test("secrets do not follow a redirect to an unencrypted connection")
  func downgrade() async throws {
    let plain = try LyingServer { exchange in
      exchange.answer("\(exchange.field("Authorization") ?? "-") \(exchange.field("Cookie") ?? "-")")
    }
    let target = plain.url()
    let server = try Self.server("server", { _ in }) { $0.answer("", status: "302 Found", "Location: \(target)") }
    try await withClient {
      $0.trust.roots = TLSFiles.path("ca.pem")
    } _: { client in
      let request = HTTP.Request(server.url(), headers: ["Authorization": "secret", "Cookie": "secret"])
      #expect(await end(client, request) == "200 - -")
    }
  }

  @Test("a plain request to a TLS server is a typed error")
  func missingEncryption() async throws {
    let server = try Self.server()
    try await withClient { client in
      let end = await end(client, HTTP.Request(server.url().replacing("https:", with: "http:")))
      #expect(end == "badServerResponse" || end == "connectionLost")
    }
  }
}

/// Replaces the directory of the system's roots for the calling thread and the threads that it creates.
private func replaceSystemRoots(by directory: String) -> Bool {
  typealias Unshare = @convention(c) (Int32) -> Int32
  typealias Mount =
    @convention(c) (UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<CChar>?, UInt, UnsafeRawPointer?) ->
    Int32
  guard let unshareName = dlsym(nil, "unshare"), let mountName = dlsym(nil, "mount") else { return false }
  let unshare = unsafeBitCast(unshareName, to: Unshare.self)
  let mount = unsafeBitCast(mountName, to: Mount.self)
  let (newMounts, bound, all, isPrivate): (Int32, UInt, UInt, UInt) = (0x20000, 1 << 12, 1 << 14, 1 << 18)
  return unshare(newMounts) == 0 && mount("none", "/", nil, all | isPrivate, nil) == 0
    && mount(directory, "/etc/ssl/certs", nil, bound, nil) == 0
}
