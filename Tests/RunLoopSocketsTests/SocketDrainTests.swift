// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("Ending the reading side of a socket", .enabled(if: TLSFiles.isAvailable), .timeLimit(.minutes(20)))
struct SocketDrainTests {
  @Test(
    "a drain that ends the input delivers received bytes, and then the end, whatever the peer does",
    arguments: ["plain", "secured", "secured later"])
  func drain(kind: String) async throws {
    let address = try SocketAddress(path: socketPath())
    let (client, server) = try (TLSContext.client(), TLSContext.server())
    let (thread, log, paused) = (SocketThread(), Log(), Box<Socket?>(nil))
    var options = ListeningSocket.Options()
    if kind == "secured" { options.accepted.tls = server }
    let listener = try ListeningSocket(at: address, options: options) { _, event in
      guard case .accepted(let socket) = event else { return }
      if kind == "secured later" { try? socket.startTLS(server) }
      socket.handler = { socket, event in
        if case .connected = event { return }
        log.write(event.word)
        if case .ended = event { socket.shutDown(.write) }
        if case .received = event, paused.value == nil {
          socket.pauseReading()
          paused.value = socket
        }
      }
      try? RunLoop.current.add(socket, forMode: .default)
    }
    try thread.loop.add(listener, forMode: .default)
    let peer = try Socket(connectingTo: address) { socket, event in
      guard case .connected = event else { return }
      if kind != "plain", socket.tlsInfo == nil {
        try? socket.startTLS(client, serverName: "localhost")
      } else {
        _ = try? socket.write("one")
      }
    }
    try thread.loop.add(peer, forMode: .default)
    await yieldUntil { paused.value != nil }
    let socket = try #require(paused.value)
    try peer.write("two")
    async let cut = listener.drain(endsInput: true)
    await yieldUntil { Self.hasEndedReading(socket) }
    socket.resumeReading()
    #expect(await cut == 0)
    thread.stop()
    #expect(log.text == "received(one) received(two) ended closed")
    peer.invalidate()
  }

  /// Whether the reading side of a socket is shut down.
  private static func hasEndedReading(_ socket: Socket) -> Bool {
    socket.withDescriptor { number in
      // POLLRDHUP, which is declared only for GNU C.
      var watched = pollfd(fd: number, events: 0x2000, revents: 0)
      return poll(&watched, 1, 0) == 1
    } ?? true
  }

  @Test("bytes that have arrived at a TLS socket are received after its reading side has ended")
  func shutDown() throws {
    let address = try SocketAddress(path: socketPath())
    let (client, server) = try (TLSContext.client(), TLSContext.server())
    let log = onSocketLoop { loop, log in
      let connected = Box<Socket?>(nil)
      _ = try loop.listen(at: address, tls: server) { socket, event in
        guard case .connected = event, let reader = connected.value else { return }
        _ = try? socket.write("waiting")
        reader.shutDown(.read)
        reader.resumeReading()
      }
      connected.value = try loop.connect(address, tls: client, serverName: "localhost") { socket, event in
        log.write(event.word)
        if case .connected = event { socket.pauseReading() }
        if case .ended = event { loop.stop() }
      }
      loop.runUntilStopped()
    }
    #expect(log == "connected received(waiting) ended")
  }
}
