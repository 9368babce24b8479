// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import RunLoopSystemEvents
import Synchronization
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("TLS sockets", .enabled(if: TLSFiles.isAvailable), .timeLimit(.minutes(20)))
struct TLSSocketTests {
  @Test(
    "bytes are echoed over TLS, both directions end, and then both sockets are closed",
    arguments: socketKinds, [TLSVersion.tls12, .tls13])
  func echo(kind: String, version: TLSVersion) throws {
    let address = try socketAddress(kind)
    let (client, server) = try (TLSContext.client(), TLSContext.server { $0.maximumVersion = version })
    let log = onSocketLoop { loop, log in
      let serverLog = Log()
      let listener = try loop.listen(at: address, tls: server) { socket, event in
        serverLog.write(event.word)
        switch event {
        case .received(let bytes): _ = try? socket.write(bytes)
        case .ended: socket.shutDown(.write)
        case .closed: if log.count(of: "closed") == 1 { loop.stop() }
        default: break
        }
      }
      try loop.connect(listener.address, tls: client, serverName: "localhost") { socket, event in
        log.write(event.word)
        switch event {
        case .connected:
          log.write("\(socket.isConnected) \(socket.tlsInfo?.version == version)")
          _ = try? socket.write("hello")
        case .received: socket.shutDown(.write)
        case .closed: if serverLog.count(of: "closed") == 1 { loop.stop() }
        default: break
        }
      }
      loop.runUntilStopped()
      listener.invalidate()
      log.write("/ \(serverLog.text)")
    }
    #expect(log == "connected true true received(hello) ended closed / connected received(hello) ended closed")
  }

  @Test("without a name, the certificate must be valid for the address", arguments: ["127.0.0.1:0", "[::1]:0"])
  func address(kind: String) throws {
    let log = onSocketLoop { loop, log in
      for name in ["server", "elsewhere"] {
        let listener = try loop.listen(at: SocketAddress(kind), tls: .server(name)) { _, _ in }
        try loop.connect(listener.address, tls: .client()) { socket, event in
          log.write(event.word)
          loop.stop()
        }
        loop.runUntilStopped()
        log.write("/")
        if name == "elsewhere" {
          let host = try #require(listener.address.host)
          #expect(log.text.contains("TLS with \(listener.address): the certificate is not for \"\(host)\""))
        }
      }
    }
    #expect(log.hasPrefix("connected / closed(TLS"))
  }

  @Test("the certificate of a host must have the name used to connect", arguments: ["server", "elsewhere"])
  func host(certificate: String) throws {
    let (client, server) = try (TLSContext.client(), TLSContext.server(certificate))
    let log = onSocketLoop { loop, log in
      let listener = try loop.listen(tls: server) { _, _ in }
      var options = Socket.Options()
      options.tls = client
      Socket.connect(
        toHost: "localhost", port: listener.address.port ?? 0, family: .ipv4, options: options, on: loop
      ) { answer in
        switch answer {
        case .success(let socket): log.write("\(socket.tlsInfo?.serverName ?? "none")")
        case .failure(let error): log.write("\(error)")
        }
        loop.stop()
      }
      loop.runUntilStopped()
    }
    if certificate == "server" {
      #expect(log == "localhost")
    } else {
      #expect(log.hasSuffix("the certificate is not for \"localhost\""), "\(log)")
    }
  }

  @Test("a client needs a name for a Unix address, unless names are not checked")
  func noName() throws {
    let address = try SocketAddress(path: socketPath())
    let listener = try ListeningSocket(at: address, tls: .server())
    #expect(tlsFailure { _ = try Socket(connectingTo: address, tls: .client()) } == "noServerName")
    #expect(
      tlsFailure { _ = try Socket(connectingTo: address, tls: .client { $0.verification = .withoutName }) }
        == "nothing")
    #expect(
      tlsFailure { _ = try Socket(connectingTo: address, tls: .client(), serverName: "a b") }
        == "badServerName(\"a b\")")
    #expect(tlsFailure { _ = try Socket(connectingTo: address, tls: .server()) } == "wrongSide")
    #expect(tlsFailure { _ = try ListeningSocket(at: .loopback(port: 0), tls: .client()) } == "wrongSide")
    listener.invalidate()
  }

  @Test(
    "both ends of a failed handshake are closed with its cause",
    arguments: [
      ("expired", "expired", "alert45"), ("self", "selfSigned", "alert48"), ("unknown", "unknownIssuer", "alert48"),
      ("elsewhere", "wrongHost(expected: \"localhost\")", "alert42"),
    ])
  func rejected(certificate: String, expected: String, alert: String) throws {
    let (client, server) = try (TLSContext.client(), TLSContext.server(certificate))
    let ends = onSocketLoop { loop, log in
      let other = Log()
      let listener = try loop.listen(tls: server) { _, event in
        other.write(event.cause)
        if log.text != "" { loop.stop() }
      }
      try loop.connect(listener.address, tls: client, serverName: "localhost") { socket, event in
        log.write(event.cause)
        if other.text != "" { loop.stop() }
      }
      loop.runUntilStopped()
      log.write(other.text)
    }
    #expect(ends == "\(expected) \(alert)")
  }

  @Test("a handshake has a deadline on the loop's clock, whatever a slow peer sends", arguments: [true, false])
  func deadline(isServer: Bool) throws {
    let (near, far) = try socketPair()
    defer { hangUp(far) }
    let context =
      try isServer
      ? TLSContext.server { $0.handshakeTimeout = .seconds(5) } : .client { $0.handshakeTimeout = .seconds(5) }
    let log = onVirtualTime { time, loop in
      let log = Log()
      do {
        var options = Socket.Options()
        options.tls = context
        options.serverName = "localhost"
        options.idleTimeout = .seconds(1)
        let socket = try Socket(takingOver: near, options: options) { _, event in
          log.write("\(event.cause)@\(time.milliseconds)")
        }
        try loop.add(socket, forMode: .default)
        // A record that arrives at one byte per second.
        let record: [UInt8] = [22, 3, 1, 0, 200, isServer ? 1 : 2, 0, 0, 196]
        for second in 1...8 {
          time.at(.seconds(second)) { _ = send(far, [record[second - 1]], 1, Int32(MSG_NOSIGNAL)) }
        }
        loop.run(mode: .default, for: .seconds(20))
        log.write("\(socket.isValid)")
      } catch { log.write("\(error)") }
      return log.text
    }
    #expect(log == "handshakeTimedOut(after: 5.0 seconds)@5000 false")
  }

  @Test("a connection that is cut is a truncation, and one that has ended is not", arguments: [true, false])
  func truncation(isCut: Bool) throws {
    let (client, server) = try (TLSContext.client(), TLSContext.server())
    let log = onSocketLoop { loop, log in
      let listener = try loop.listen(tls: server) { socket, event in
        guard case .received = event else { return }
        _ = try? socket.write("last")
        // Below the session, as a middlebox can.
        if isCut { socket.withDescriptor { _ = shutdown($0, Int32(SHUT_RDWR)) } } else { socket.shutDown(.write) }
      }
      try loop.connect(listener.address, tls: client, serverName: "localhost") { socket, event in
        log.write(event.cause)
        switch event {
        case .connected: _ = try? socket.write("x")
        case .ended: socket.shutDown(.write)
        case .closed: loop.stop()
        default: break
        }
      }
      loop.runUntilStopped()
    }
    #expect(log == (isCut ? "connected received(last) truncated" : "connected received(last) ended closed"))
  }

  @Test("the peer of an invalidated socket without queued bytes sees a regular end")
  func invalidated() throws {
    let (client, server) = try (TLSContext.client(), TLSContext.server())
    let log = onSocketLoop { loop, log in
      let listener = try loop.listen(tls: server) { socket, event in
        log.write(event.word)
        if case .ended = event { loop.stop() }
      }
      try loop.connect(listener.address, tls: client, serverName: "localhost") { socket, event in
        guard case .connected = event else { return }
        _ = try? socket.write("all")
        socket.invalidate()
      }
      loop.runUntilStopped()
    }
    #expect(log == "connected received(all) ended")
  }

  @Test("bytes written before the handshake wait for it, and so does the end")
  func early() throws {
    let (client, server) = try (TLSContext.client(), TLSContext.server())
    let log = onSocketLoop { loop, log in
      let listener = try loop.listen(tls: server) { socket, event in
        log.write(event.word)
        if case .ended = event { loop.stop() }
      }
      let socket = try Socket(connectingTo: listener.address, tls: client, serverName: "localhost")
      try socket.write("early")
      log.write("\(socket.queuedByteCount)")
      socket.shutDown(.write)
      log.write(socketFailure { try socket.write("x") })
      try loop.add(socket, forMode: .default)
      loop.runUntilStopped()
    }
    #expect(log == "5 \(SocketError.closedForWriting) connected received(early) ended")
  }

  @Test("a peer that reads nothing stops the writer at the marks of plain bytes, and later receives everything")
  func pressure() throws {
    let (client, server) = try (TLSContext.client(), TLSContext.server())
    let log = onSocketLoop { loop, log in
      let total = 2 << 20
      let (received, sent, most) = (Box(0), Box(0), Box(0))
      let isRight = Box(true)
      let peer = Box<Socket?>(nil)
      var listening = ListeningSocket.Options()
      listening.socketOptions = [.receiveBuffer(bytes: 64 * 1024)]
      let listener = try loop.listen(options: listening, tls: server) { socket, event in
        switch event {
        case .connected:
          peer.value = socket
          socket.pauseReading()
        case .received(let bytes):
          for index in 0..<bytes.byteCount where index % 4096 == 0 {
            let byte = bytes.unsafeLoad(fromByteOffset: index, as: UInt8.self)
            if byte != UInt8(truncatingIfNeeded: (received.value + index) / 1000) { isRight.value = false }
          }
          received.value += bytes.byteCount
          if received.value == total { loop.stop() }
        default: log.write(event.cause)
        }
      }
      var options = Socket.Options()
      // Small kernel buffers, whatever the machine's defaults.
      options.socketOptions = [.sendBuffer(bytes: 64 * 1024), .receiveBuffer(bytes: 64 * 1024)]
      options.highWater = 100_000
      options.lowWater = 10_000
      @Sendable func fill(_ socket: Socket) {
        var goesOn = true
        while goesOn, sent.value < total {
          let chunk = (0..<30_000).map { UInt8(truncatingIfNeeded: (sent.value + $0) / 1000) }.prefix(
            total - sent.value)
          goesOn = (try? socket.write(Array(chunk))) ?? false
          sent.value += chunk.count
          most.value = max(most.value, socket.queuedByteCount)
        }
      }
      let stuck = Box(0)
      try loop.connect(listener.address, options: options, tls: client, serverName: "localhost") { socket, event in
        switch event {
        case .connected:
          fill(socket)
          stuck.value = sent.value
          peer.value?.resumeReading()
        case .writable: fill(socket)
        default: log.write(event.cause)
        }
      }
      // The server's handshake may finish after the client's.
      while received.value < total {
        loop.run(mode: .default, for: .milliseconds(10))
        peer.value?.resumeReading()
      }
      log.write("\(received.value == total) \(isRight.value) \(stuck.value < total) \(most.value < 130_000)")
    }
    #expect(log == "true true true true")
  }

  @Test("a handler that reads by itself gets the bytes left in the session, to the end")
  func readiness() throws {
    let (client, server) = try (TLSContext.client(), TLSContext.server())
    let log = onSocketLoop { loop, log in
      var options = ListeningSocket.Options()
      options.accepted.delivery = .readiness
      let read = Box<[UInt8]>([])
      let listener = try loop.listen(options: options, tls: server) { socket, event in
        switch event {
        case .readable:
          var bytes = [UInt8](repeating: 0, count: 1000)
          // Once for each event, and less than is available.
          let count = bytes.withUnsafeMutableBytes { try? socket.read(into: $0) }
          guard let count else { return }
          read.value += bytes[..<count]
          if count == 0 {
            log.write("end")
            loop.stop()
          }
        default: log.write(event.word)
        }
      }
      try loop.connect(listener.address, tls: client, serverName: "localhost") { socket, event in
        guard case .connected = event else { return }
        _ = try? socket.write([UInt8](repeating: 9, count: 50_500))
        socket.shutDown(.write)
      }
      loop.runUntilStopped()
      log.write("\(read.value.count) \(read.value.allSatisfy { $0 == 9 })")
    }
    #expect(log == "connected end 50500 true")
  }

  @Test("tasks send and receive, in small amounts too, and see the end")
  func tasks() async throws {
    // However long other tests occupy the task pool.
    let client = try TLSContext.client { $0.handshakeTimeout = nil }
    let server = try TLSContext.server { $0.handshakeTimeout = nil }
    let thread = SocketThread()
    let listener = try ListeningSocket(at: .loopback(port: 0), tls: server)
    try thread.loop.add(listener, forMode: .default)
    let socket = try Socket(connectingTo: listener.address, tls: client, serverName: "localhost")
    try thread.loop.add(socket, forMode: .default)
    let peer = try #require(try await listener.accept())
    try thread.loop.add(peer, forMode: .default)
    async let echo: Void = {
      while let chunk = try await peer.receive(atMost: 7000) { try await peer.send(chunk) }
      peer.shutDown(.write)
    }()
    let text = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 / 300) }
    async let sending: Void = {
      for start in stride(from: 0, to: text.count, by: 50_000) {
        try await socket.send(Array(text[start..<start + 50_000]))
      }
      socket.shutDown(.write)
    }()
    var got: [UInt8] = []
    while let chunk = try await socket.receive(atMost: 333) { got += chunk }
    try await sending
    try await echo
    #expect(got == text)
    thread.stop()
  }

  @Test("a connection is upgraded to TLS after a command, and queued bytes are sent as plain text first")
  func startTLS() throws {
    let (client, server) = try (TLSContext.client(), TLSContext.server())
    let log = onSocketLoop { loop, log in
      let serverLog = Log()
      let listener = try loop.listen { socket, event in
        serverLog.write(event.word)
        guard case .received(let bytes) = event else { return }
        if text(bytes) == "STARTTLS" {
          _ = try? socket.write("go ahead")
          log.write(socketFailure { try socket.startTLS(server) })
          log.write("\(tlsFailure { try socket.startTLS(server) })")
        } else {
          _ = try? socket.write(bytes)
        }
      }
      try loop.connect(listener.address) { socket, event in
        log.write(event.word)
        switch event {
        case .connected: _ = try? socket.write(socket.tlsInfo == nil ? "STARTTLS" : "secret")
        case .received(let bytes):
          guard text(bytes) == "go ahead" else { return loop.stop() }
          do {
            try socket.startTLS(client, serverName: "localhost")
            log.write("\(socket.isConnected)")
          } catch { log.write("\(error)") }
        default: break
        }
      }
      loop.runUntilStopped()
      log.write("/ \(serverLog.text)")
    }
    #expect(
      log == "connected nothing alreadySecured received(go ahead) false connected received(secret) "
        + "/ received(STARTTLS) connected received(secret)")
  }

  @Test("a socket that is not connected, or has ended a side, cannot be upgraded to TLS")
  func notSecured() throws {
    let (near, far) = try socketPair()
    defer { hangUp(far) }
    let context = try TLSContext.client()
    let socket = try Socket(takingOver: near)
    #expect(tlsFailure { try socket.startTLS(context) } == "noServerName")
    socket.shutDown(.write)
    #expect(tlsFailure { try socket.startTLS(context, serverName: "a") } == "\(SocketError.closedForWriting)")
    socket.invalidate()
    #expect(tlsFailure { try socket.startTLS(context, serverName: "a") } == "\(SocketError.invalid)")
  }

  @Test("the reading side can end while the other continues, and that is no truncation")
  func readingEnded() throws {
    let (client, server) = try (TLSContext.client(), TLSContext.server())
    let log = onSocketLoop { loop, log in
      let listener = try loop.listen(tls: server) { socket, event in
        if case .connected = event { return }
        log.write("server:\(event.word)")
        if case .ended = event { loop.stop() }
      }
      try loop.connect(listener.address, tls: client, serverName: "localhost") { socket, event in
        log.write(event.word)
        if case .connected = event { socket.shutDown(.read) }
        if case .ended = event {
          _ = try? socket.write("on")
          socket.shutDown(.write)
        }
      }
      loop.runUntilStopped()
    }
    #expect(
      ["connected ended server:received(on) server:ended", "connected ended closed server:received(on) server:ended"]
        .contains(log), "\(log)")
  }

  @Test("a side that is ended before the connection is made ends when it is made", arguments: [false, true])
  func endedEarly(isSecured: Bool) throws {
    let contexts = isSecured ? try (client: TLSContext.client(), server: TLSContext.server()) : nil
    let log = onSocketLoop { loop, log in
      var options = ListeningSocket.Options()
      options.accepted.tls = contexts?.server
      // The server neither sends nor ends.
      let listener = try loop.listen(options: options) { _, _ in }
      var ours = Socket.Options()
      ours.tls = contexts?.client
      ours.serverName = "localhost"
      let socket = try loop.connect(listener.address, options: ours) { _, event in
        log.write(event.word)
        if case .closed = event { loop.stop() }
      }
      socket.shutDown(.both)
      loop.runUntilStopped()
    }
    #expect(log == "connected ended closed")
  }

  @Test("decrypted bytes are delivered to a reader that resumes after its output has failed")
  func decryptedBehindFailure() throws {
    let (near, far) = try socketPair()
    let (client, server) = try (TLSContext.client(), TLSContext.server())
    let log = onSocketLoop { loop, log in
      var options = Socket.Options()
      options.tls = server
      let peer = try Socket(takingOver: far, options: options) { socket, event in
        guard case .connected = event else { return }
        _ = try? socket.write("ab")
        socket.pauseReading()
      }
      options.tls = client
      options.serverName = "localhost"
      options.delivery = .readiness
      let socket = try Socket(takingOver: near, options: options) { socket, event in
        log.write(event.word)
        switch event {
        case .readable:
          var byte: UInt8 = 0
          let count = withUnsafeMutableBytes(of: &byte) { (try? socket.read(into: $0)) ?? nil }
          log.write("\(count ?? -1)")
          if byte == UInt8(ascii: "a") { socket.pauseReading() }
          loop.stop()
        case .writable: socket.resumeReading()
        default: break
        }
      }
      for each in [peer, socket] { try loop.add(each, forMode: .default) }
      loop.runUntilStopped()
      // As after a write timeout, while the peer is silent.
      socket.lock.withLock {
        socket.state.oweRoom()
        socket.failOutput(.idle(.write, after: .seconds(1), address: nil))
      }
      loop.run(mode: .default, for: .zero)
      loop.run(mode: .default, for: .zero)
    }
    #expect(log == "connected readable 1 writable readable 1")
  }

  @Test("bytes that arrive with the end of the handshake are delivered")
  func withHandshake() throws {
    // The client's last flight, its bytes and its end arrive together.
    let (near, far) = try socketPair()
    defer { hangUp(far) }
    let server = try TLSContext.server()
    let log = onSocketLoop { loop, log in
      var options = Socket.Options()
      options.tls = server
      let socket = try Socket(takingOver: near, options: options) { socket, event in
        log.write(event.word)
        if case .ended = event { loop.stop() }
      }
      try loop.add(socket, forMode: .default)
      // Used by this thread only.
      nonisolated(unsafe) let client = try TLSSession(.client(), serverName: "localhost")
      client.start()
      let source = RunLoop.DescriptorSource(descriptor: far, events: .readable) { _, _ in
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = recv(far, &bytes, bytes.count, 0)
        guard count > 0 else { return }
        _ = bytes[..<count].withUnsafeBytes {
          client.receive($0, into: UnsafeMutableRawBufferPointer(start: nil, count: 0))
        }
        if client.state.phase == .open {
          _ = Array("at once".utf8).withUnsafeBytes { client.write($0) }
          client.endWriting()
        }
        _ = client.withOutput { send(far, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        client.sent(client.outputCount)
      }
      _ = client.withOutput { send(far, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      client.sent(client.outputCount)
      try loop.add(source, forMode: .default)
      loop.runUntilStopped()
      source.invalidate()
    }
    #expect(log == "connected received(at once) ended")
  }
}

extension RunLoop {
  /// Adds a listening socket that accepts each TLS connection with a handler.
  func listen(
    at address: SocketAddress = .loopback(port: 0), options: ListeningSocket.Options = .init(), tls: TLSContext,
    _ handler: @escaping Socket.Handler
  ) throws -> ListeningSocket {
    var options = options
    options.accepted.tls = tls
    return try listen(at: address, options: options, handler)
  }

  /// Connects to an address and starts TLS.
  @discardableResult
  func connect(
    _ address: SocketAddress, options: Socket.Options = .init(), tls: TLSContext, serverName: String? = nil,
    _ handler: @escaping Socket.Handler
  ) throws -> Socket {
    let socket = try Socket(
      connectingTo: address, tls: tls, serverName: serverName, options: options, handler: handler)
    try add(socket, forMode: .default)
    return socket
  }
}

extension Socket.Event {
  /// A short description of the event, which is the cause for a TLS error.
  var cause: String {
    if case .closed(.tls(let error)?) = self { return error.cause.word }
    return word
  }
}
