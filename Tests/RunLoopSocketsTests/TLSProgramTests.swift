// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("TLS sockets and openssl's programs", .enabled(if: TLSFiles.isAvailable), .timeLimit(.minutes(20)))
struct TLSProgramTests {
  @Test("s_client connects, agrees on a protocol, and both ends see the end", arguments: ["-tls1_2", "-tls1_3"])
  func client(version: String) async throws {
    let server = try TLSContext.server {
      $0.applicationProtocols = ["echo"]
      $0.identities = ["b.example": TLSFiles.identity("second")]
    }
    let log = Log()
    let thread = SocketThread()
    let listener = try echo(server, on: thread.loop, log)
    let program = try OpenSSLProgram(
      "s_client", "-connect", "\(listener.address)", "-CAfile", TLSFiles.path("ca.pem"), "-verify_return_error",
      "-verify_hostname", "b.example", "-servername", "b.example", "-alpn", "echo", version, "-no_ign_eof")
    await program.wait(for: "Verify return code: 0 (ok)")
    program.send("hello\n")
    await program.wait(for: "hello")
    #expect(await program.end() == 0)
    #expect(program.output.contains("ALPN protocol: echo"))
    await elsewhere { waitUntil { log.text.hasSuffix("closed") } }
    #expect(log.text == "connected received(hello\n) ended closed")
    thread.stop()
  }

  @Test("s_client rejects invalid certificates", arguments: ["expired", "self", "unknown", "elsewhere"])
  func rejectingClient(certificate: String) async throws {
    let log = Log()
    let thread = SocketThread()
    let listener = try echo(.server(certificate), on: thread.loop, log)
    let program = try OpenSSLProgram(
      "s_client", "-connect", "\(listener.address)", "-CAfile", TLSFiles.path("ca.pem"), "-verify_return_error",
      "-verify_hostname", "localhost")
    #expect(await program.end() != 0)
    await elsewhere { waitUntil { !log.text.isEmpty } }
    #expect(log.text.hasPrefix("alert"), "\(log.text)")
    thread.stop()
  }

  @Test("a client's renegotiation is rejected")
  func renegotiation() async throws {
    let log = Log()
    let thread = SocketThread()
    let listener = try echo(.server(), on: thread.loop, log)
    let program = try OpenSSLProgram(
      "s_client", "-connect", "\(listener.address)", "-CAfile", TLSFiles.path("ca.pem"), "-tls1_2")
    await program.wait(for: "Verify return code: 0 (ok)")
    program.send("R\n")
    await program.wait(for: "RENEGOTIATING")
    #expect(await program.end() != 0)
    #expect(program.output.contains("no renegotiation"), "\(program.output)")
    await elsewhere { waitUntil { log.text.count(where: { $0 == " " }) == 1 } }
    // One handshake, and then an end of some kind.
    #expect(log.text.hasPrefix("connected ") && !log.text.contains("received"), "\(log.text)")
    thread.stop()
  }

  @Test("a TLS 1.2 server's renegotiation is rejected, and the connection continues or ends")
  func renegotiatingServer() async throws {
    let program = try OpenSSLProgram(
      "s_server", "-accept", "127.0.0.1:0", "-cert", TLSFiles.path("server.pem"), "-key", TLSFiles.path("server.key"),
      "-tls1_2", "-naccept", "1")
    let address = try await program.acceptAddress()
    let client = try TLSContext.client()
    let thread = SocketThread()
    let log = Log()
    let socket = try Socket(connectingTo: address, tls: client) { _, event in log.write(event.cause) }
    try thread.loop.add(socket, forMode: .default)
    await elsewhere { waitUntil { log.text == "connected" } }
    program.send("r\n")
    await program.wait(for: "SSL_do_handshake -> ")
    program.send("still\n")
    await elsewhere { waitUntil { log.text.count(where: { $0 == " " }) == 1 } }
    #expect(!log.text.hasPrefix("connected connected"), "\(log.text)")
    socket.invalidate()
    _ = await program.end()
    thread.stop()
  }

  @Test("a connection to s_server succeeds, and a second one is resumed", arguments: ["-tls1_2", "-tls1_3"])
  func server(version: String) async throws {
    let program = try OpenSSLProgram(
      "s_server", "-accept", "127.0.0.1:0", "-cert", TLSFiles.path("server.pem"), "-key", TLSFiles.path("server.key"),
      "-CAfile", TLSFiles.path("ca.pem"), "-Verify", "1", "-verify_return_error", "-alpn", "rev", "-rev", version,
      "-naccept", "2")
    let address = try await program.acceptAddress()
    let client = try TLSContext.client {
      $0.identity = TLSFiles.identity("client")
      $0.applicationProtocols = ["other", "rev"]
    }
    for turn in 0..<2 {
      let log = onSocketLoop { loop, log in
        try loop.connect(address, tls: client) { socket, event in
          log.write(event.cause)
          switch event {
          case .connected:
            let info = socket.tlsInfo
            log.write("\(info?.applicationProtocol ?? "none") \(info?.isResumed == (turn == 1))")
            _ = try? socket.write("desrever\n")
          case .received: socket.shutDown(.write)
          case .ended, .closed: loop.stop()
          default: break
          }
        }
        loop.runUntilStopped()
      }
      #expect(log.hasPrefix("connected rev true received(reversed\n)"), "\(log)")
    }
    #expect(await program.end() == 0)
  }

  @Test("s_server's bad certificates and versions are rejected")
  func badServer() async throws {
    for (certificate, options, expected) in [
      ("expired", [], "expired"), ("usage", [], "wrongPurpose"), ("self", [], "selfSigned"),
      ("server", ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], "alert70"),
    ] {
      let program = try OpenSSLProgram(
        [
          "s_server", "-accept", "127.0.0.1:0", "-cert", TLSFiles.path("\(certificate).pem"), "-key",
          TLSFiles.path("\(certificate).key"), "-naccept", "1",
        ] + options)
      let address = try await program.acceptAddress()
      let client = try TLSContext.client()
      let log = onSocketLoop { loop, log in
        try loop.connect(address, tls: client) { _, event in
          log.write(event.cause)
          loop.stop()
        }
        loop.runUntilStopped()
      }
      #expect(log == expected)
      _ = await program.end()
    }
  }

  /// Starts an echo server on a loop, and logs the events of its connections.
  private func echo(_ context: TLSContext, on loop: RunLoop, _ log: Log) throws -> ListeningSocket {
    let listener = try ListeningSocket(at: .loopback(port: 0), tls: context) { _, event in
      guard case .accepted(let socket) = event else { return }
      socket.handler = { socket, event in
        log.write(event.cause)
        if case .received(let bytes) = event { _ = try? socket.write(bytes) }
        if case .ended = event { socket.shutDown(.write) }
      }
      try? RunLoop.current.add(socket, forMode: .default)
    }
    try loop.add(listener, forMode: .default)
    return listener
  }
}
