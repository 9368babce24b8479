// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("TLS sockets and hostile peers", .enabled(if: TLSFiles.isAvailable), .timeLimit(.minutes(20)))
struct TLSHostileTests {
  @Test(
    "a peer that sends another protocol, too much or nothing is disconnected",
    arguments: [
      ("GET / HTTP/1.1\r\n\r\n", "notTLS"), ("", "closedDuringHandshake"),
      ("\u{16}\u{3}\u{1}", "closedDuringHandshake"),
      (String(repeating: "\u{16}", count: 100_000), "notTLS"),
      ("\u{16}\u{3}\u{1}\u{0}\u{4}\u{1}\u{0}\u{0}\u{0}", "violation"),
    ])
  func strangers(bytes: String, expected: String) throws {
    let context = try TLSContext.server()
    let log = onSocketLoop { loop, log in
      let listener = try loop.listen(tls: context) { _, event in
        log.write(event.cause)
        loop.stop()
      }
      // A plain client, which closes after this.
      let socket = try loop.connect(listener.address) { _, _ in }
      try socket.write(bytes)
      socket.shutDown(.write)
      loop.runUntilStopped()
    }
    #expect(log == expected)
  }

  @Test("a client that leaves at any point of the handshake or later is one error, and the server continues")
  func leaving() throws {
    let (client, server) = try (TLSContext.client(), TLSContext.server())
    // The number of bytes that both ends send until the connection is open.
    let whole = try TLSEnds(client, server)
    var sizes: [Int] = []
    whole.change = { bytes in
      sizes.append(bytes.count)
      return bytes
    }
    whole.run()
    let most = sizes.reduce(0, +)
    let log = onSocketLoop { loop, log in
      let ends = Box<[String]>([])
      let listener = try loop.listen(tls: server) { _, event in
        if case .closed = event { ends.value += [event.cause] }
        if case .ended = event { ends.value += ["ended"] }
        loop.stop()
      }
      for limit in stride(from: 0, through: most, by: 97) {
        let count = ends.value.count
        let far = try connect(to: listener.address)
        let session = try TLSSession(client, serverName: "localhost")
        session.start()
        var left = limit
        // The client sends as much as possible on this thread, and the server is served in between.
        while left > 0 {
          let sent = session.withOutput { send(far, $0.baseAddress, min($0.count, left), Int32(MSG_NOSIGNAL)) }
          if sent > 0 {
            left -= sent
            session.sent(sent)
          }
          guard left > 0 else { break }
          loop.run(mode: .default, for: .milliseconds(1), returnAfterSourceHandled: true)
          var bytes = [UInt8](repeating: 0, count: 65_536)
          let got = recv(far, &bytes, bytes.count, Int32(MSG_DONTWAIT))
          guard got != 0, session.state.failure == nil, session.state.phase != .open || session.hasOutput else { break }
          guard got > 0 else { continue }
          _ = bytes[..<got].withUnsafeBytes {
            session.receive($0, into: UnsafeMutableRawBufferPointer(start: nil, count: 0))
          }
        }
        close(far)
        while ends.value.count == count { loop.runUntilStopped() }
      }
      let kinds = Set(ends.value)
      log.write("\(kinds.isSubset(of: ["closedDuringHandshake", "truncated", "closed(recv:\(ECONNRESET))"]))")
      if kinds.count > 3 { log.write("\(kinds)") }
      // The server still works.
      try loop.connect(listener.address, tls: client, serverName: "localhost") { socket, event in
        log.write(event.cause)
        loop.stop()
      }
      while !log.text.contains(" ") { loop.runUntilStopped() }
    }
    #expect(log == "true connected")
  }

  @Test("malformed data after the handshake ends the connection, and earlier bytes are delivered")
  func garbage() throws {
    let (client, server) = try (TLSContext.client(), TLSContext.server())
    let log = onSocketLoop { loop, log in
      let listener = try loop.listen(tls: server) { _, event in
        log.write(event.cause)
        if case .closed = event { loop.stop() }
      }
      try loop.connect(listener.address, tls: client, serverName: "localhost") { socket, event in
        guard case .connected = event else { return }
        _ = try? socket.write("good")
        socket.withDescriptor {
          _ = send($0, "\u{17}\u{3}\u{3}\u{0}\u{20}no record, but as long as one...", 37, Int32(MSG_NOSIGNAL))
        }
      }
      loop.runUntilStopped()
    }
    #expect(log == "connected received(good) violation")
  }

  @Test("a storm of connections that fail, are cut or succeed leaks neither descriptors nor memory")
  func storm() async {
    await #expect(processExitsWith: .success) {
      _ = RunLoop.main
      let contexts = try (TLSContext.client(), TLSContext.server(), TLSContext.server("expired"))
      @Sendable func turn(_ count: Int) throws -> Int {
        let closed = Box(0)
        let log = onSocketLoop { loop, log in
          let good = try loop.listen(tls: contexts.1) { socket, event in
            if case .received(let bytes) = event { _ = try? socket.write(bytes) }
            if case .ended = event { socket.shutDown(.write) }
          }
          let bad = try loop.listen(tls: contexts.2) { _, _ in }
          for index in 0..<count {
            let address = index % 3 == 0 ? bad.address : good.address
            try loop.connect(address, tls: contexts.0, serverName: "localhost") { socket, event in
              switch event {
              case .connected:
                _ = try? socket.write([UInt8](repeating: 1, count: 20_000))
                if index % 3 == 1 { socket.withDescriptor { _ = shutdown($0, Int32(SHUT_RDWR)) } }
              case .received: socket.shutDown(.write)
              case .closed: closed.update { $0 += 1 }
              default: break
              }
              if closed.value == count { loop.stop() }
            }
            if index % 50 == 49 { loop.run(mode: .default, for: .milliseconds(5)) }
          }
          if closed.value < count { loop.runUntilStopped() }
        }
        #expect(log == "")
        return closed.value
      }
      try await expectNothingLeft {
        let count = try turn(300)
        #expect(count == 300)
      }
    }
  }

  private func connect(to address: SocketAddress) throws -> Int32 {
    let far = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    let isConnected = address.withBytes { bytes, length in
      Glibc.connect(far, bytes?.assumingMemoryBound(to: sockaddr.self), length) == 0
    }
    try #require(isConnected)
    return far
  }
}
