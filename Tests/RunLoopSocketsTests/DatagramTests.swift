// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

extension DatagramSocket.Event {
  /// A short description of the event, with the bytes as text.
  fileprivate var word: String {
    switch self {
    case .received(let bytes, let envelope):
      "received(\(text(bytes))\(envelope.isTruncated ? "… of \(envelope.byteCount)" : ""))"
    case .writable: "writable"
    case .failed(.system(let error, _)): "failed(\(error.call):\(error.number))"
    case .failed(let error): "failed(\(error))"
    case .closed(.system(let error, _)): "closed(\(error.call):\(error.number))"
    case .closed(let error): "closed(\(error))"
    }
  }
}

/// Returns a short description of the error that a body throws.
private func failure(_ body: () throws -> Void) -> String {
  do {
    try body()
    return "nothing"
  } catch DatagramError.system(let error, let address) {
    return "\(error.call):\(error.number) \(address.map { "\($0)" } ?? "-")"
  } catch DatagramError.descriptor(let number, let error) {
    return "\(number) \(error.call):\(error.number)"
  } catch {
    return "\(error)"
  }
}

/// Sends each datagram back twice.
@Sendable private func echoTwice(_ socket: DatagramSocket, _ event: DatagramSocket.Event) {
  guard case .received(let bytes, let envelope) = event else { return }
  for _ in 0..<2 { _ = try? socket.send(bytes, to: envelope.sender) }
}

@Suite("Datagram sockets", .timeLimit(.minutes(20)))
struct DatagramTests {
  @Test("datagrams are echoed with their contents and sender, for every address kind", arguments: socketKinds)
  func thereAndBack(kind: String) {
    let log = onSocketLoop { loop, log in
      let server = try DatagramSocket(boundTo: socketAddress(kind), handler: echoTwice)
      let count = Box(0)
      let client = try DatagramSocket(boundTo: socketAddress(kind)) { _, event in
        log.write(event.word)
        guard case .received(_, let envelope) = event else { return }
        log.write("\(envelope.sender == (try? server.localAddress()))")
        count.value += 1
        if count.value == 4 { loop.stop() }
      }
      for socket in [server, client] { try loop.add(socket, forMode: .default) }
      let address = try server.localAddress()
      log.write("\(try client.send(Array("abc".utf8), to: address)) \(try client.send([], to: address))")
      loop.runUntilStopped()
      for socket in [server, client] { socket.invalidate() }
    }
    let (one, none) = ("received(abc) true", "received() true")
    #expect(log == "true true \(one) \(one) \(none) \(none)")
  }

  @Test("a connected datagram socket sends to its peer, and receives from no other")
  func connected() {
    let log = onSocketLoop { loop, log in
      let server = try DatagramSocket(boundTo: .loopback(port: 0), handler: echoTwice)
      let other = try DatagramSocket(boundTo: .loopback(port: 0))
      let count = Box(0)
      let client = try DatagramSocket(boundTo: nil, connectedTo: server.localAddress()) { _, event in
        log.write(event.word)
        count.value += 1
        if count.value == 2 { loop.stop() }
      }
      for socket in [server, client] { try loop.add(socket, forMode: .default) }
      try other.send([UInt8(ascii: "x")], to: client.localAddress())
      try client.send([UInt8(ascii: "a")])
      loop.runUntilStopped()
      log.write(failure { try other.send([1]) })
    }
    #expect(log == "received(a) received(a) sendto:\(EDESTADDRREQ) -")
  }

  @Test("a datagram that is too long for its receiver reports its full length", arguments: ["127.0.0.1:0", "unix:@"])
  func truncated(kind: String) {
    let log = onSocketLoop { loop, log in
      var options = DatagramSocket.Options()
      options.maximumDatagramSize = 4
      let receiver = try DatagramSocket(boundTo: socketAddress(kind), options: options) { _, event in
        log.write(event.word)
        if case .received(_, let envelope) = event, envelope.byteCount == 5 { loop.stop() }
      }
      let sender = try DatagramSocket(boundTo: nil, connectedTo: receiver.localAddress())
      try loop.add(receiver, forMode: .default)
      for text in ["abcdefgh", "abcd", "abcde"] { try sender.send(Array(text.utf8)) }
      loop.runUntilStopped()
    }
    #expect(log == "received(abcd… of 8) received(abcd) received(abcd… of 5)")
  }

  @Test("a datagram that the network cannot carry is rejected with its length and address")
  func tooLong() throws {
    let receiver = try DatagramSocket(boundTo: .loopback(port: 0))
    let sender = try DatagramSocket(boundTo: .any(port: 0))
    let address = try receiver.localAddress()
    let bytes = [UInt8](repeating: 1, count: 65_508)
    #expect(throws: DatagramError.tooLong(byteCount: 65_508, address: address)) { try sender.send(bytes, to: address) }
    #expect(try sender.send(Array(bytes.dropFirst()), to: address))
  }

  @Test("the longest datagram of a Unix socket arrives whole if the receiver has room for it")
  func long() {
    let log = onSocketLoop { loop, log in
      var options = DatagramSocket.Options()
      options.maximumDatagramSize = 1 << 20
      options.socketOptions = [.sendBuffer(bytes: 200_000)]
      let receiver = try DatagramSocket(boundTo: socketAddress("unix:@"), options: options) { _, event in
        if case .received(let bytes, let envelope) = event { log.write("\(bytes.byteCount) \(envelope.isTruncated)") }
        loop.stop()
      }
      let sender = try DatagramSocket(boundTo: nil, connectedTo: receiver.localAddress(), options: options)
      try loop.add(receiver, forMode: .default)
      log.write("\(try sender.send([UInt8](repeating: 7, count: 150_000)))")
      loop.runUntilStopped()
    }
    #expect(log == "true 150000 false")
  }

  @Test("a missing receiver is reported, and the sending socket continues")
  func rejected() {
    let log = onSocketLoop { loop, log in
      let (address, descriptor) = try refusingUDPAddress()
      let client = try DatagramSocket(boundTo: nil, connectedTo: address) { _, event in
        log.write(event.word)
        loop.stop()
      }
      try loop.add(client, forMode: .default)
      try client.send([1])
      loop.runUntilStopped()
      log.write("\(client.isValid)")
      // Now the port's holder receives from this client. The port stays bound, as another process could take it
      // otherwise.
      _ = try client.localAddress().withBytes {
        connect(descriptor, $0?.assumingMemoryBound(to: sockaddr.self), $1)
      }
      let server = try DatagramSocket(takingOver: descriptor) { socket, event in
        if case .received(let bytes, _) = event { _ = try? socket.send(bytes) }
      }
      try loop.add(server, forMode: .default)
      try client.send([UInt8(ascii: "b")])
      loop.runUntilStopped()
    }
    #expect(log == "failed(recvfrom:\(ECONNREFUSED)) true received(b)")
  }

  /// Reserves a port on which nothing receives.
  private func refusingUDPAddress() throws -> (SocketAddress, Int32) {
    let holder = try DatagramSocket(boundTo: .loopback(port: 0))
    let address = try holder.localAddress()
    // Connected to another address, the socket receives nothing from others and keeps the port.
    let descriptor = try #require(holder.withDescriptor { fcntl($0, F_DUPFD_CLOEXEC, 3) })
    _ = SocketAddress.loopback(port: 9).withBytes {
      connect(descriptor, $0?.assumingMemoryBound(to: sockaddr.self), $1)
    }
    return (address, descriptor)
  }

  @Test("an address that cannot be bound is part of the error")
  func addresses() throws {
    let first = try DatagramSocket(boundTo: .loopback(port: 0))
    let taken = try first.localAddress()
    #expect(failure { _ = try DatagramSocket(boundTo: taken) } == "bind:\(EADDRINUSE) \(taken)")
    let nowhere = try SocketAddress(path: "/nowhere/at/all")
    #expect(failure { _ = try DatagramSocket(boundTo: nowhere) } == "bind:\(ENOENT) \(nowhere)")
    #expect(failure { _ = try DatagramSocket(boundTo: nil, connectedTo: nowhere) } == "connect:\(ENOENT) \(nowhere)")
    let six = SocketAddress.loopback(port: 9, family: .ipv6)
    #expect(failure { try first.send([1], to: six) } == "sendto:\(EAFNOSUPPORT) \(six)")
    #expect(
      "\(DatagramError.system(SystemError(call: "bind", number: EACCES), address: six))".hasPrefix("[::1]:9: bind"))
  }

  @Test("a full receiver makes its sender wait until it is notified of room", arguments: [true, false])
  func room(isConnected: Bool) {
    let log = onVirtualSocketLoop { loop, log in
      let received = Box(0)
      let receiver = try DatagramSocket(boundTo: socketAddress("unix:@")) { _, event in
        if case .received = event { received.value += 1 }
      }
      let address = try receiver.localAddress()
      let sender = try DatagramSocket(
        boundTo: socketAddress("unix:@"), connectedTo: isConnected ? address : nil
      ) { _, event in log.write(event.word) }
      receiver.pauseReading()
      for socket in [receiver, sender] { try loop.add(socket, forMode: .default) }
      var sent = 0
      while try sender.send([1], to: isConnected ? nil : address) { sent += 1 }
      let passes = Box(0)
      loop.add(RunLoop.Observer(activities: .beforeTimers) { _, _ in passes.value += 1 }, forMode: .default)
      if isConnected {
        loop.run(mode: .default, for: .seconds(1))
        log.write("\(received.value) \(passes.value < 5)")
      }
      receiver.resumeReading()
      loop.run(mode: .default, for: .seconds(1))
      log.write("\(received.value == sent) \(try sender.send([1], to: isConnected ? nil : address))")
    }
    #expect(log == (isConnected ? "0 true writable true true" : "writable true true"))
  }

  @Test("a flood is received in parts, so that the loop's other items are served in between")
  func flood() {
    let log = onVirtualSocketLoop { loop, log in
      let (inTurn, most, total) = (Box(0), Box(0), Box(0))
      let receiver = try DatagramSocket(boundTo: .loopback(port: 0)) { _, event in
        guard case .received = event else { return log.write(event.word) }
        inTurn.value += 1
        total.value += 1
        most.value = max(most.value, inTurn.value)
      }
      let sender = try DatagramSocket(boundTo: nil, connectedTo: receiver.localAddress())
      for _ in 0..<100 { try sender.send([1]) }
      loop.add(RunLoop.Observer(activities: .beforeTimers) { _, _ in inTurn.value = 0 }, forMode: .default)
      try loop.add(receiver, forMode: .default)
      loop.run(mode: .default, for: .seconds(1))
      log.write("\(total.value) \(most.value <= DatagramBatch.most) \(most.value > 1)")
    }
    #expect(log == "100 true true")
  }

  @Test("the file of a Unix address has the requested mode, and is removed with the socket")
  func file() throws {
    let path = socketPath()
    var options = DatagramSocket.Options()
    options.fileMode = 0o622
    let socket = try DatagramSocket(boundTo: SocketAddress(path: path), options: options)
    var status = stat()
    #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o622)
    socket.invalidate()
    #expect(access(path, F_OK) == -1)
    do {
      let dropped = try DatagramSocket(boundTo: SocketAddress(path: path))
      #expect(dropped.isValid)
    }
    #expect(access(path, F_OK) == -1)
  }

  @Test("only a datagram socket can be taken over, and another descriptor stays its owner's")
  func takingOver() throws {
    var ends: [Int32] = [0, 0]
    try #require(socketpair(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0, &ends) == 0)
    let log = onVirtualSocketLoop { [ends] loop, log in
      let one = try DatagramSocket(takingOver: ends[0]) { _, event in log.write(event.word) }
      let other = try DatagramSocket(takingOver: ends[1])
      log.write("\(fcntl(ends[0], F_GETFD) == FD_CLOEXEC) \(fcntl(ends[0], F_GETFL) & O_NONBLOCK != 0)")
      try loop.add(one, forMode: .default)
      try other.send(Array("x".utf8))
      loop.run(mode: .default, for: .seconds(1))
    }
    #expect(log == "true true received(x)")
    let (stream, peer) = try socketPair()
    #expect(failure { _ = try DatagramSocket(takingOver: stream) } == "\(stream) getsockopt:\(EPROTOTYPE)")
    for descriptor in [stream, peer] { #expect(close(descriptor) == 0) }
    #expect(failure { _ = try DatagramSocket(takingOver: -1) } == "-1 getsockopt:\(EBADF)")
  }

  @Test("an invalidated datagram socket calls no handler, accepts nothing, and leaves the loop")
  func invalidated() {
    let log = onVirtualSocketLoop { loop, log in
      let socket = try DatagramSocket(boundTo: .loopback(port: 0)) { socket, event in
        log.write(event.word)
        socket.invalidate()
      }
      try loop.add(socket, forMode: .default)
      let sender = try DatagramSocket(boundTo: nil, connectedTo: socket.localAddress())
      for _ in 0..<3 { try sender.send(Array("x".utf8)) }
      loop.run(mode: .default, for: .seconds(1))
      log.write("\(socket.isValid) \(loop.contains(socket, forMode: .default)) \(socket.handler == nil)")
      log.write("\(failure { _ = try socket.send([1]) }) \(failure { _ = try socket.localAddress() })")
      log.write(failure { try loop.add(socket, forMode: .default) })
    }
    let invalid = "\(DatagramError.invalid)"
    #expect(log == "received(x) false false true \(invalid) \(invalid) \(RunLoopError.invalidSource)")
  }
}
