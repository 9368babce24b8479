// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import Glibc
import RunLoopCore
import RunLoopSockets
import TestSupport
import Testing

@testable import RunLoopHTTP

/// HTTP/2 without encryption.
@Suite struct PlainHTTP2Tests {
  @Test("consecutive and concurrent requests all succeed over plain HTTP/2")
  func requests() async throws {
    let server = try FrameServer("hello")
    try await withClient {
      $0.version = .http2
    } _: { client in
      for _ in 0..<3 {
        let (body, response) = try await client.data(for: HTTP.Request(server.url))
        #expect("\(response.version) \(response.status.code) \(body.text ?? "")" == "2 200 hello")
      }
      let ends = await withTaskGroup(of: String.self) { group in
        for _ in 0..<20 { group.addTask { await end(client, HTTP.Request(server.url)) } }
        return await group.reduce(into: Set<String>()) { _ = $0.insert($1) }
      }
      #expect(ends == ["200 hello"])
    }
    #expect(server.answered.value == 23)
    #expect(server.broken.value == 0)
    // A library that would restart the protocol uses a connection for each request.
    if !CurlLibrary.keepsPlainHTTP2 { #expect(server.accepted.value == 23) }
  }

  @Test("a reset stream is a lost connection at any time, and malformed headers are a bad response")
  func resets() async throws {
    @Sendable func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt32, _ bytes: [UInt8]) -> [UInt8] {
      FrameServer.frame(type, flags: flags, of: stream, bytes)
    }
    func end(_ retries: Int = 0, _ frames: @escaping @Sendable (UInt32) -> [UInt8]) async throws -> String {
      let server = try FrameServer("", frames: frames)
      return try await withClient {
        $0.version = .http2
        $0.retry.maximumCount = retries
        $0.retry.delay = .milliseconds(1)
      } _: { client in
        "\(await RunLoopHTTPTests.end(client, HTTP.Request(server.url))) \(server.answered.value)"
      }
    }
    // PROTOCOL_ERROR, INTERNAL_ERROR, CANCEL, and an undefined code.
    for reason: UInt8 in [1, 2, 8, 200] {
      let reset: [UInt8] = [0, 0, 0, reason]
      #expect(try await end { frame(3, 0, $0, reset) } == "connectionLost 1", "\(reason)")
      let retried = try await end(2) { frame(3, 0, $0, reset) }
      // Later libraries also send a request again themselves if a reused connection has returned nothing.
      #expect(["connectionLost 3", "connectionLost 5"].contains(retried), "\(reason)")
      #expect(
        try await end { frame(1, 4, $0, [0x88]) + frame(0, 0, $0, [104, 105]) + frame(3, 0, $0, reset) }
          == "connectionLost 1", "\(reason)")
    }
    // A field in upper case, an unknown pseudo-header, no status, and an invalid header block. libcurl before 8.0
    // reports nothing of headers that it cannot read completely: it sees a stream reset, or the end of the
    // connection.
    let garbage = clc_version() >= 0x080000 ? "badServerResponse 1" : "connectionLost 3"
    for block: [UInt8] in [
      [0x88, 0, 1, 88, 1, 121], [0x88, 0, 2, 58, 120, 1, 121], [0, 1, 120, 1, 121], [0xff, 0xff, 0xff],
    ] {
      #expect(try await end(2) { frame(1, 4, $0, block) } == garbage, "\(block)")
    }
    // A body that is longer or shorter than its Content-Length.
    let length: [UInt8] = [0x88, 0x0f, 0x0d, 1, 51]
    #expect(try await end { frame(1, 4, $0, length) + frame(0, 1, $0, [104, 105, 33, 33]) } == "connectionLost 1")
    #expect(try await end { frame(1, 4, $0, length) + frame(0, 1, $0, [104, 105]) } == "connectionLost 1")
  }

  // According to their source, libcurl 8.1 to 8.12 do not notice it, and only an idle timeout ends the request.
  @Test(
    "invalid HTTP/2 ends the request, even if it is read separately and nothing follows",
    .enabled(if: !(0x080100..<0x080d00).contains(clc_version())),
    arguments: [
      // An unreadable header block, alone and after the headers of a response; data for a stream that does not exist.
      [[0, 0, 3, 1, 4, 0, 0, 0, 1, 0xff, 0xff, 0xff]],
      [[0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88], [0, 0, 3, 1, 4, 0, 0, 0, 1, 0xff, 0xff, 0xff]],
      [[0, 0, 1, 0, 0, 0, 0, 0, 3, 106]],
      // SETTINGS and PING of the wrong length.
      [[0, 0, 3, 4, 0, 0, 0, 0, 0, 1, 1, 1]], [[0, 0, 1, 6, 0, 0, 0, 0, 0, 1]],
    ] as [[[UInt8]]])
  func stands(_ frames: [[UInt8]]) async throws {
    let server = try FrameServer("", isLate: true) { _ in frames.flatMap { $0 } }
    let outcome = try await withClient {
      $0.version = .http2
    } _: { client in
      await end(client, HTTP.Request(server.url))
    }
    #expect(["badServerResponse", "connectionLost"].contains(outcome))
  }

  @Test(
    "a plain HTTP/2 server that floods the client with frames without effect loses the connection",
    arguments: [
      // PRIORITY; PING without and with the ACK flag; WINDOW_UPDATE.
      [0, 0, 5, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 15], [0, 0, 8, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
      [0, 0, 8, 6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ] as [[UInt8]])
  func flood(_ frame: [UInt8]) async throws {
    let server = try FloodServer(frame)
    let outcome = try await withClient {
      $0.version = .http2
    } _: { client in
      await end(client, HTTP.Request(server.url))
    }
    // libcurl itself limits the number of replies that a peer may request.
    #expect(["badServerResponse", "connectionLost"].contains(outcome))
    await eventually { server.ended.value > 0 }
  }

  /// Creates a guard that checks only when called, and a connection that does not report its received bytes.
  private func guarded(_ body: (FloodGuard, FloodGuard.Connection, _ peer: Int32) -> Void) throws {
    var ends: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    let looking = FloodGuard(interval: .seconds(1 << 30))
    body(looking, try looking.add(ends[0]), ends[1])
    looking.remove(ends[0])
    for end in ends { close(end) }
  }

  @Test("a connection without byte counts is ended if bytes arrived at sixty checks without progress")
  func uncounted() throws {
    try guarded { looking, connection, peer in
      #expect(write(peer, "flood", 5) == 5)
      for _ in 1..<FloodGuard.mostLooks { looking.look() }
      #expect(!connection.wasFlooded)
      // After progress, or while reading is suspended, the count starts again.
      connection.noteProgress()
      for _ in 0..<FloodGuard.mostLooks { looking.look() }
      #expect(!connection.wasFlooded)
      connection.noteHold(true)
      looking.look()
      connection.noteHold(false)
      for _ in 1..<FloodGuard.mostLooks { looking.look() }
      #expect(!connection.wasFlooded)
      looking.look()
      #expect(connection.wasFlooded)
      #expect(send(peer, "more", 4, Int32(MSG_NOSIGNAL)) == -1 && errno == EPIPE)
    }
  }

  @Test("a connection without waiting requests is not ended, however often it is checked")
  func silent() throws {
    try guarded { looking, connection, _ in
      for _ in 0..<3 * FloodGuard.mostLooks { looking.look() }
      #expect(!connection.wasFlooded)
    }
  }
}
