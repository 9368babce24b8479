// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("TLS streams", .enabled(if: TLSFiles.isAvailable), .timeLimit(.minutes(20)))
struct TLSStreamTests {
  @Test(
    "a TLS pair of streams opens, passes bytes both ways, and sees the end", arguments: ["127.0.0.1:0", "unix"])
  func echo(kind: String) throws {
    let address = try socketAddress(kind)
    let (client, server) = try (TLSContext.client(), TLSContext.server())
    let log = onSocketLoop { loop, log in
      let (serverLog, got) = (Log(), Box<[UInt8]>([]))
      let listener = try loop.listen(at: address, tls: server) { socket, event in
        if case .received(let bytes) = event { _ = try? socket.write(bytes) }
        if case .received = event { return }
        serverLog.write(event.cause)
        if case .ended = event { socket.shutDown(.write) }
      }
      let (input, output) = try ByteStream.pair(connectingTo: listener.address, tls: client, serverName: "localhost")
      let text = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 / 100) }
      let sent = Box(0)
      output.handler = { stream, event in
        guard case .canAcceptBytes = event else { return log.write("out:\(event.word)") }
        let count = try? output.write(Array(text[sent.value...].prefix(30_000)))
        sent.value += count ?? 0
        if sent.value == text.count { output.close() }
      }
      input.handler = { stream, event in
        switch event {
        case .hasBytesAvailable:
          // One read for each event, of much less than is available.
          var bytes = [UInt8](repeating: 0, count: 777)
          let count = bytes.withUnsafeMutableBytes { bytes in (try? input.read(into: bytes)) ?? 0 }
          got.value += bytes[..<count]
        case .endEncountered: loop.stop()
        default: log.write("in:\(event.word) \(input.tlsInfo?.version == .tls13)")
        }
      }
      for stream in [input, output] as [ByteStream] {
        try stream.schedule(in: loop, forMode: .default)
        stream.open()
      }
      loop.runUntilStopped()
      log.write("\(got.value == text) \(serverLog.text.hasPrefix("connected ended")) \(input.status)")
      listener.invalidate()
    }
    #expect(
      ["in:open true out:open true true atEnd", "out:open in:open true true true atEnd"].contains(log), "\(log)")
  }

  @Test("the streams of a pair may be on different loops, and each opens whichever performs the handshake")
  func twoLoops() async throws {
    let (client, server) = try (TLSContext.client(), TLSContext.server())
    let threads = [SocketThread(), SocketThread(), SocketThread()]
    for _ in 0..<20 {
      let log = Log()
      let listener = try ListeningSocket(at: .loopback(port: 0), tls: server) { _, event in
        guard case .accepted(let socket) = event else { return }
        socket.handler = { socket, event in
          if case .received(let bytes) = event { _ = try? socket.write(bytes) }
        }
        try? RunLoop.current.add(socket, forMode: .default)
      }
      try threads[0].loop.add(listener, forMode: .default)
      let (input, output) = try ByteStream.pair(connectingTo: listener.address, tls: client, serverName: "localhost")
      input.handler = { _, event in log.write("in:\(event.word)") }
      output.handler = { _, event in
        if case .canAcceptBytes = event { _ = try? output.write([7]) } else { log.write("out:\(event.word)") }
      }
      try input.schedule(in: threads[1].loop, forMode: .default)
      try output.schedule(in: threads[2].loop, forMode: .default)
      input.open()
      output.open()
      await elsewhere { waitUntil { log.text.contains("in:bytes") && log.text.contains("out:open") } }
      #expect(log.text.hasPrefix("in:open out:open") || log.text.hasPrefix("out:open in:open"), "\(log.text)")
      input.close()
      output.close()
      listener.invalidate()
    }
    for thread in threads { thread.stop() }
  }

  @Test(
    "bytes accepted by a closed stream are sent, however slowly the peer reads, even if it was in no loop",
    arguments: [true, false], [false, true])
  func lingering(isFull: Bool, isInNoLoop: Bool) throws {
    let (client, server) = try (TLSContext.client(), TLSContext.server())
    let log = onSocketLoop { loop, log in
      var options = ListeningSocket.Options()
      options.socketOptions = [.receiveBuffer(bytes: 8 * 1024)]
      let (received, peer) = (Box(0), Box<Socket?>(nil))
      let listener = try loop.listen(options: options, tls: server) { socket, event in
        switch event {
        case .connected:
          socket.pauseReading()
          peer.value = socket
        case .received(let bytes): received.value += bytes.byteCount
        default:
          log.write(event.cause)
          loop.stop()
        }
      }
      let (input, output) = try ByteStream.pair(connectingTo: listener.address, tls: client, serverName: "localhost")
      let taken = Box(0)
      output.handler = { stream, event in
        guard case .canAcceptBytes = event else { return }
        // Until nothing more fits, or only once, so that the kernel takes all of it.
        while let count = try? output.write([UInt8](repeating: 1, count: 50_000)) {
          taken.value += count
          guard isFull else { break }
        }
        for stream in isInNoLoop ? [input, output] as [ByteStream] : [] { stream.remove(from: loop, forMode: .default) }
        input.close()
        output.close()
        log.write("closed:\(taken.value > 0)")
      }
      for stream in [input, output] as [ByteStream] {
        try stream.schedule(in: loop, forMode: .default)
        stream.open()
      }
      while log.text.isEmpty || peer.value == nil { loop.run(mode: .default, for: .milliseconds(10)) }
      peer.value?.resumeReading()
      loop.runUntilStopped()
      log.write("\(received.value == taken.value)")
    }
    #expect(log == "closed:true ended true")
  }

  @Test("both streams of a pair fail with the cause of the TLS error", arguments: ["expired", "elsewhere"])
  func rejected(certificate: String) throws {
    let (client, server) = try (TLSContext.client(), TLSContext.server(certificate))
    let log = onSocketLoop { loop, log in
      let listener = try loop.listen(tls: server) { _, _ in }
      let (input, output) = try ByteStream.pair(connectingTo: listener.address, tls: client, serverName: "localhost")
      for stream in [input, output] as [ByteStream] {
        stream.handler = { stream, event in
          log.write(event.word)
          if log.text.contains(" ") { loop.stop() }
        }
        try stream.schedule(in: loop, forMode: .default)
        stream.open()
      }
      loop.runUntilStopped()
      let failure = tlsFailure { _ = try output.write([1]) }
      #expect(failure.filter { $0 != " " } == log.text.split(separator: " ").first ?? "")
    }
    let cause = certificate == "expired" ? "expired" : "wrongHost(expected:\"localhost\")"
    #expect(log == "\(cause) \(cause)")
  }

  @Test("a handshake of streams has a deadline on their loop's clock")
  func deadline() throws {
    let (near, far) = try socketPair()
    defer { hangUp(far) }
    let context = try TLSContext.client { $0.handshakeTimeout = .seconds(3) }
    let log = onVirtualTime { time, loop in
      let log = Log()
      do {
        let (input, output) = try ByteStream.pair(takingOver: near, tls: context, serverName: "localhost")
        for stream in [input, output] as [ByteStream] {
          stream.handler = { _, event in log.write("\(event.word)@\(time.milliseconds)") }
          try stream.schedule(in: loop, forMode: .default)
          stream.open()
        }
        loop.run(mode: .default, for: .seconds(10))
      } catch { log.write("\(error)") }
      return log.text
    }
    #expect(log == "handshakeTimedOut(after:3.0seconds)@3000 handshakeTimedOut(after:3.0seconds)@3000")
  }

  @Test("a connection that is cut is an error of the stream, after the bytes before it")
  func truncation() throws {
    let (client, server) = try (TLSContext.client(), TLSContext.server())
    let log = onSocketLoop { loop, log in
      let listener = try loop.listen(tls: server) { socket, event in
        guard case .connected = event else { return }
        _ = try? socket.write("last")
        socket.withDescriptor { _ = shutdown($0, Int32(SHUT_RDWR)) }
      }
      let (input, output) = try ByteStream.pair(connectingTo: listener.address, tls: client, serverName: "localhost")
      input.handler = { stream, event in
        guard case .hasBytesAvailable = event else {
          log.write(event.word)
          if case .errorOccurred = event { loop.stop() }
          return
        }
        var bytes = [UInt8](repeating: 0, count: 100)
        let count = bytes.withUnsafeMutableBytes { bytes in (try? input.read(into: bytes)) ?? 0 }
        if count > 0 { log.write("\(count)") }
      }
      try input.schedule(in: loop, forMode: .default)
      input.open()
      loop.runUntilStopped()
      output.close()
    }
    #expect(log == "open 4 truncated")
  }
}

extension ByteStream.Event {
  /// A short description of the event, which is the cause for a TLS error.
  fileprivate var word: String {
    switch self {
    case .openCompleted: "open"
    case .hasBytesAvailable: "bytes"
    case .canAcceptBytes: "room"
    case .endEncountered: "end"
    case .errorOccurred(.tls(let error)): String(error.cause.word.filter { $0 != " " })
    case .errorOccurred(let error): "\(error)"
    }
  }
}
