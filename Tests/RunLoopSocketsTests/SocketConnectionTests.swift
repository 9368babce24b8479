// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import RunLoopSystemEvents
import Testing
import TestSupport

@testable import RunLoopSockets

/// Identifies an open file even if its descriptor number is reused, or returns nil if it is closed.
func fileIdentity(_ descriptor: Int32) -> ino_t? {
  var status = stat()
  return fstat(descriptor, &status) == 0 ? status.st_ino : nil
}

@Suite("Connections of sockets", .timeLimit(.minutes(20)))
struct SocketConnectionTests {
  @Test("bytes are echoed, both directions end, and then both sockets are closed", arguments: socketKinds)
  func echo(kind: String) throws {
    let address = try socketAddress(kind)
    let log = onSocketLoop { loop, log in
      let listener = try loop.listen(at: address) { socket, event in
        switch event {
        case .received(let bytes): _ = try? socket.write(bytes)
        case .ended: socket.shutDown(.write)
        case .closed:
          log.write("server:\(event.word)")
          if log.count(of: "closed") == 1 { loop.stop() }
        default: log.write("server:\(event.word)")
        }
      }
      try loop.connect(listener.address) { socket, event in
        log.write(event.word)
        switch event {
        case .connected: _ = try? socket.write("hello")
        case .received: socket.shutDown(.write)
        case .closed: if log.count(of: "server:closed") == 1 { loop.stop() }
        default: break
        }
      }
      loop.runUntilStopped()
      listener.invalidate()
    }
    #expect(
      [
        "connected received(hello) server:closed ended closed", "connected received(hello) ended server:closed closed",
        "connected received(hello) ended closed server:closed",
      ].contains(log), "\(log)")
  }

  @Test("the descriptor is closed when the end is reported")
  func closedBefore() throws {
    let (one, other) = try socketPair()
    let log = onSocketLoop { loop, log in
      let before = fileIdentity(one)
      let socket = try Socket(takingOver: one) { socket, event in
        switch event {
        case .ended: socket.shutDown(.write)
        case .closed: log.write("\(before != nil) \(fileIdentity(one) == before)")
        default: log.write(event.word)
        }
      }
      try loop.add(socket, forMode: .default)
      close(other)
      loop.runUntilStopped()
    }
    #expect(log == "true false")
  }

  @Test("a refused connection is reported once, and is the last event", arguments: ["127.0.0.1:0", "[::1]:0"])
  func rejected(kind: String) throws {
    let (address, descriptor) = try refusingAddress(kind)
    defer { close(descriptor) }
    let log = onSocketLoop { loop, log in
      let socket = try loop.connect(address) { _, event in log.write(event.word) }
      log.write("\(loop.runUntilStopped()) \(socket.isValid) \(loop.contains(socket, forMode: .default))")
      log.write(socketFailure { try socket.write("x") })
      log.write("\(socketFailure { try loop.add(socket, forMode: .default) } == "\(RunLoopError.invalidSource)")")
    }
    #expect(log == "closed(connect:\(ECONNREFUSED)) finished false false connect:\(ECONNREFUSED) true")
  }

  @Test("connecting to a Unix address without a listener fails immediately")
  func refusedUnix() throws {
    let path = socketPath()
    let address = try SocketAddress(path: path)
    #expect(socketFailure { _ = try Socket(connectingTo: address) } == "connect:\(ENOENT)")
    let name = try SocketAddress(abstractName: path)
    #expect(socketFailure { _ = try Socket(connectingTo: name) } == "connect:\(ECONNREFUSED)")
  }

  @Test("one direction may end while the other continues")
  func halfClose() {
    let log = onSocketLoop { loop, log in
      let listener = try loop.listen { socket, event in
        guard case .ended = event else { return }
        // Bytes written after the other side's end still arrive.
        _ = try? socket.write("after")
        socket.shutDown(.write)
      }
      try loop.connect(listener.address) { socket, event in
        log.write(event.word)
        switch event {
        case .connected:
          socket.shutDown(.write)
          log.write(socketFailure { try socket.write("x") })
        case .closed: loop.stop()
        default: break
        }
      }
      loop.runUntilStopped()
    }
    #expect(log == "connected \(SocketError.closedForWriting) received(after) ended closed")
  }

  @Test("a reset connection is reported once")
  func reset() {
    let log = onSocketLoop { loop, log in
      let listener = try loop.listen { socket, event in
        guard case .received = event, let number = socket.lock.withLock({ socket.descriptor?.number }) else { return }
        // With this option, closing sends a reset.
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(number, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
        socket.invalidate()
      }
      try loop.connect(listener.address) { socket, event in
        log.write(event.word)
        if case .connected = event { _ = try? socket.write("x") }
        if case .closed = event { loop.stop() }
      }
      loop.runUntilStopped()
    }
    #expect(log == "connected closed(recv:\(ECONNRESET))")
  }

  @Test("bytes written before the connection is made wait for it, and so does the end")
  func early() {
    let log = onSocketLoop { loop, log in
      let listener = try loop.listen { socket, event in
        log.write(event.word)
        if case .ended = event { loop.stop() }
      }
      let socket = try Socket(connectingTo: listener.address)
      try socket.write("early")
      socket.shutDown(.write)
      log.write("\(socket.queuedByteCount)")
      try loop.add(socket, forMode: .default)
      loop.runUntilStopped()
    }
    #expect(log == "5 received(early) ended")
  }

  @Test("the addresses of both ends match")
  func addresses() {
    let log = onSocketLoop { loop, log in
      let accepted = Box<Socket?>(nil)
      let listener = try ListeningSocket(at: .loopback(port: 0)) { _, event in
        if case .accepted(let socket) = event { accepted.value = socket }
        loop.stop()
      }
      try loop.add(listener, forMode: .default)
      let socket = try Socket(connectingTo: listener.address)
      loop.runUntilStopped()
      log.write("\(try socket.remoteAddress() == listener.address)")
      log.write("\(try socket.localAddress() == accepted.value?.remoteAddress())")
      socket.invalidate()
      log.write(socketFailure { _ = try socket.localAddress() })
    }
    #expect(log == "true true \(SocketError.invalid)")
  }

  @Test("a connection attempt without a response times out")
  func connectTimeout() throws {
    // A Unix listener whose queue is full rejects immediately. A TCP listener drops the connection, and its client
    // waits.
    var options = ListeningSocket.Options()
    options.backlog = 0
    let listener = try ListeningSocket(at: .loopback(port: 0), options: options)
    let fillers = try (0..<4).map { _ in try Socket(connectingTo: listener.address) }
    let log = onSocketLoop { loop, log in
      var options = Socket.Options()
      options.connectTimeout = .milliseconds(20)
      try loop.connect(listener.address, options: options) { _, event in log.write(event.word) }
      log.write("\(loop.runUntilStopped())")
    }
    #expect(log == "closed(\(SocketError.timedOut(after: .milliseconds(20), address: listener.address))) finished")
    for filler in fillers { filler.invalidate() }
  }

  @Test("an idle connection times out, and an active one does not")
  func idleTimeout() throws {
    let (one, other) = try socketPair()
    let log = onVirtualTime { time, loop in
      let log = Log()
      let milliseconds: @Sendable () -> Int64 = { time.now.nanoseconds / 1_000_000 }
      var options = Socket.Options()
      options.idleTimeout = .milliseconds(50)
      do {
        let socket = try Socket(takingOver: one, options: options) { _, event in
          log.write("\(event.word)@\(milliseconds())")
        }
        try loop.add(socket, forMode: .default)
      } catch {
        log.write("\(error)")
      }
      time.at(.milliseconds(30)) { _ = write(other, "x", 1) }
      log.write("\(loop.runUntilStopped())")
      return log.text
    }
    close(other)
    #expect(log == "received(x)@30 closed(\(SocketError.timedOut(after: .milliseconds(50), address: nil)))@80 finished")
  }

  @Test("a socket that is moved to another loop times out there")
  func idleTimeoutElsewhere() throws {
    let (one, other) = try socketPair()
    defer { close(other) }
    let log = onSocketLoop { loop, log in
      var options = Socket.Options()
      options.idleTimeout = .milliseconds(20)
      let socket = try Socket(takingOver: one, options: options) { _, event in log.write(event.word) }
      try loop.add(socket, forMode: .default)
      onNewThread {
        let next = RunLoop.current
        do { try next.add(socket, forMode: .default) } catch { log.write("\(error)") }
        loop.remove(socket, forMode: .default)
        log.write("\(next.runUntilStopped())")
      }
    }
    #expect(log == "closed(\(SocketError.timedOut(after: .milliseconds(20), address: nil))) finished")
  }

  @Test("a socket's handler that is replaced while it runs is released without the socket's lock")
  func replacedHandler() throws {
    let (one, other) = try socketPair()
    defer { close(other) }
    let log = onVirtualSocketLoop { loop, log in
      let socket = try Socket(takingOver: one)
      func setHandler() {
        let asker = SocketAsker(socket, log)
        socket.handler = { socket, event in
          socket.handler = nil
          log.write("\(event.word) \(asker.answer)")
        }
      }
      setHandler()
      try loop.add(socket, forMode: .default)
      _ = write(other, "x", 1)
      loop.run(mode: .default, for: .zero)
      socket.invalidate()
    }
    #expect(log == "received(x) true released true")
  }

  @Test("a stream's handler that is replaced while it runs is released without the stream's lock")
  func replacedStreamHandler() throws {
    let (one, other) = try socketPair()
    defer { close(other) }
    let log = onVirtualSocketLoop { loop, log in
      let (input, output) = try ByteStream.pair(takingOver: one)
      func setHandler() {
        let asker = StreamAsker(input, log)
        input.handler = { stream, _ in
          stream.handler = nil
          log.write(asker.answer)
        }
      }
      setHandler()
      try input.schedule(in: loop, forMode: .default)
      input.open()
      loop.run(mode: .default, for: .zero)
      input.close()
      output.close()
    }
    #expect(log == "open released open")
  }

  @Test("an invalidated socket reports nothing more, and leaves its loop")
  func invalidated() throws {
    let (one, other) = try socketPair()
    let log = onSocketLoop { loop, log in
      let socket = try Socket(takingOver: one) { socket, event in
        log.write(event.word)
        socket.invalidate()
        log.write(socketFailure { try socket.write("x") })
      }
      try loop.add(socket, forMode: .default)
      _ = write(other, "ab", 2)
      log.write("\(loop.runUntilStopped()) \(awaitPeerClosed(other))")
      close(other)
      socket.invalidate()
    }
    #expect(log == "received(ab) \(SocketError.invalid) finished true")
  }

  @Test("an unreferenced socket in no loop is closed, and a loop keeps its sockets alive")
  func released() throws {
    let (one, other) = try socketPair()
    let log = onSocketLoop { loop, log in
      do {
        let socket = try Socket(takingOver: one) { _, event in log.write(event.word) }
        try loop.add(socket, forMode: .default)
      }
      log.write("\(isPeerClosed(other))")
      _ = write(other, "x", 1)
      loop.run(mode: .default, for: .unlimited, returnAfterSourceHandled: true)
      log.write("\(isPeerClosed(other))")
    }
    // The loop has ended with its thread.
    #expect(log == "false received(x) false")
    #expect(awaitPeerClosed(other))
    close(other)
  }
}

/// Accesses a socket when the handler that holds this object is called, and when it is released.
private final class SocketAsker: Sendable {
  private let socket: Socket
  private let log: Log

  init(_ socket: Socket, _ log: Log) {
    self.socket = socket
    self.log = log
  }

  var answer: String { "\(socket.isValid)" }

  deinit { log.write("released \(answer)") }
}

/// Like `SocketAsker`, for a stream.
private final class StreamAsker: Sendable {
  private let stream: ByteStream
  private let log: Log

  init(_ stream: ByteStream, _ log: Log) {
    self.stream = stream
    self.log = log
  }

  var answer: String { "\(stream.status)" }

  deinit { log.write("released \(answer)") }
}
