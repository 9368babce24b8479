// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

/// Sends bytes and descriptors through a socket that the library does not manage.
private func pass(_ descriptors: [Int32], with bytes: [UInt8], by socket: Int32) throws {
  let sent = crl_message_send(socket, bytes, bytes.count, nil, 0, descriptors, Int32(descriptors.count))
  try #require(sent >= 0)
}

/// Creates a pipe, and returns both ends.
private func pipeEnds() throws -> (read: Int32, write: Int32) {
  var ends: [Int32] = [0, 0]
  try #require(crl_pipe(&ends) == 0)
  return (ends[0], ends[1])
}

/// Waits until every copy of a pipe's other end is closed, when a read returns the end.
private func isAtEnd(_ pipe: Int32) -> Bool {
  var byte: UInt8 = 0
  return read(pipe, &byte, 1) == 0
}

@Suite("Ancillary data of bytes and datagrams", .timeLimit(.minutes(20)))
struct AncillaryTests {
  @Test("a reply to a datagram is sent from the address that received it", arguments: ["0.0.0.0:0", "[::]:0"])
  func answersFromWhereItWasAsked(kind: String) {
    let log = onSocketLoop { loop, log in
      var options = DatagramSocket.Options()
      if kind.hasPrefix("[") {
        options.socketOptions = [SocketOption(level: Int32(IPPROTO_IPV6), name: IPV6_V6ONLY, value: 0)]
      }
      let server = try DatagramSocket(boundTo: socketAddress(kind), options: options) { socket, event in
        guard case .received(let bytes, let envelope) = event else { return }
        log.write("\(envelope.destination?.host ?? "-") \(envelope.destination == envelope.localAddress)")
        log.write("\(envelope.interface == crl_interface_number("lo"))")
        _ = try? socket.send(bytes, to: envelope.sender, from: envelope.localAddress)
      }
      try loop.add(server, forMode: .default)
      let port = try #require(try server.localAddress().port)
      // A connected client receives from that address only.
      let asked = try SocketAddress(host: "127.0.0.5", port: port)
      let client = try DatagramSocket(boundTo: nil, connectedTo: asked) { _, event in
        if case .received(let bytes, _) = event { log.write(text(bytes)) } else { log.write("failed") }
        loop.stop()
      }
      try loop.add(client, forMode: .default)
      try client.send(Array("ping".utf8))
      loop.runUntilStopped()
      for socket in [server, client] { socket.invalidate() }
    }
    #expect(log == "\(kind.hasPrefix("[") ? "::ffff:" : "")127.0.0.5 true true ping")
  }

  @Test("datagrams that arrive together report where and when each arrived")
  func burst() {
    let log = onSocketLoop { loop, log in
      var options = DatagramSocket.Options()
      options.reportsDestination = true
      options.reportsTime = true
      let before = Duration.nanoseconds(Int64(clock_gettime_nanoseconds()))
      let seen = Box<[String]>([])
      let server = try DatagramSocket(boundTo: .loopback(port: 0), options: options) { socket, event in
        guard case .received(_, let envelope) = event else { return }
        let isTimed = envelope.time.map { $0 >= before && $0 <= .nanoseconds(Int64(clock_gettime_nanoseconds())) }
        seen.value.append("\(envelope.destination == (try? socket.localAddress())) \(isTimed ?? false)")
        if seen.value.count == 40 { loop.stop() }
      }
      let address = try server.localAddress()
      let client = try DatagramSocket(boundTo: nil, connectedTo: address)
      for _ in 0..<40 { try client.send([1]) }
      try loop.add(server, forMode: .default)
      loop.runUntilStopped()
      log.write(Set(seen.value).joined(separator: ","))
      for socket in [server, client] { socket.invalidate() }
    }
    #expect(log == "true true")
  }

  @Test("a socket without options reports no ancillary data, and a source address must match the socket")
  func errors() throws {
    let socket = try DatagramSocket(boundTo: .any(port: 0))
    let peer = try DatagramSocket(boundTo: .loopback(port: 0))
    let target = try peer.localAddress()
    func failure(_ source: SocketAddress) -> String {
      do {
        return "\(try socket.send([1], to: target, from: source))"
      } catch {
        return "\(error)"
      }
    }
    #expect(failure(try SocketAddress(host: "127.0.0.7", port: 0)) == "true")
    #expect(failure(.loopback(port: 0, family: .ipv6)).contains("Address family not supported"))
    #expect(failure(try SocketAddress(path: "/tmp/x")).contains("Address family not supported"))
    #expect(failure(try SocketAddress(host: "192.0.2.1", port: 0)).hasPrefix("127.0.0.1"))
    let extras = Datagram.Envelope(sender: nil, byteCount: 0, isTruncated: false, extras: nil)
    #expect(extras.destination == nil && extras.time == nil && extras.descriptors.isEmpty)
  }

  @Test("descriptors that a peer passes are available with the bytes they were sent with", arguments: [false, true])
  func descriptorsOfStream(byReading: Bool) {
    let log = onSocketLoop { loop, log in
      let (mine, other) = try socketPair()
      let (end, passed) = try pipeEnds()
      var options = Socket.Options()
      options.maximumDescriptorCount = 1
      options.delivery = byReading ? .readiness : .bytes
      let socket = try Socket(takingOver: mine, options: options) { socket, event in
        var bytes = ""
        switch event {
        case .received(let received): bytes = text(received)
        case .readable:
          withUnsafeTemporaryAllocation(byteCount: 100, alignment: 1) { room in
            let count = (try? socket.read(into: room)) ?? nil ?? 0
            bytes = String(decoding: room[..<count], as: UTF8.self)
          }
        default: break
        }
        guard !bytes.isEmpty else { return }
        let taken = socket.takeDescriptors()
        log.write("\(bytes):\(taken.count):\(socket.droppedDescriptorCount)")
        for number in taken.compactMap({ $0.take() }) {
          log.write("\(fcntl(number, F_GETFD) & FD_CLOEXEC != 0) \(write(number, "!", 1))")
          close(number)
        }
        if bytes.hasSuffix("c") { loop.stop() }
      }
      try pass([], with: Array("a".utf8), by: other)
      try pass([passed, passed, passed], with: Array("b".utf8), by: other)
      try pass([], with: Array("c".utf8), by: other)
      close(passed)
      try loop.add(socket, forMode: .default)
      loop.runUntilStopped()
      var byte: UInt8 = 0
      log.write("\(read(end, &byte, 1)) \(isAtEnd(end))")
      close(end)
      hangUp(other)
      socket.invalidate()
    }
    #expect(log == "ab:1:2 true 1 c:0:2 1 true")
  }

  @Test("unwanted descriptors from a peer fill no queue: they are counted and closed")
  func unwanted() {
    let log = onSocketLoop { loop, log in
      let (mine, other) = try socketPair()
      let (end, passed) = try pipeEnds()
      let socket = try Socket(takingOver: mine) { socket, event in
        guard case .received(let bytes) = event, text(bytes).hasSuffix("z") else { return }
        log.write("\(socket.takeDescriptors().count) \(socket.droppedDescriptorCount)")
        loop.stop()
      }
      for _ in 0..<20 { try pass([passed, passed], with: [1], by: other) }
      try pass([], with: Array("z".utf8), by: other)
      close(passed)
      try loop.add(socket, forMode: .default)
      loop.runUntilStopped()
      log.write("\(isAtEnd(end))")
      close(end)
      hangUp(other)
      socket.invalidate()
    }
    #expect(log == "0 40 true")
  }

  @Test("descriptors that were not taken are closed with the socket")
  func untaken() {
    let log = onSocketLoop { loop, log in
      let (mine, other) = try socketPair()
      let (end, passed) = try pipeEnds()
      var options = Socket.Options()
      options.maximumDescriptorCount = 10
      let socket = try Socket(takingOver: mine, options: options) { _, _ in loop.stop() }
      try pass([passed], with: [1], by: other)
      close(passed)
      try loop.add(socket, forMode: .default)
      loop.runUntilStopped()
      socket.invalidate()
      log.write("\(isAtEnd(end)) \(socket.takeDescriptors().count)")
      close(end)
      hangUp(other)
    }
    #expect(log == "true 0")
  }

  @Test("a datagram's descriptors are part of its envelope, even if several arrive together", arguments: [0, 2])
  func descriptorsOfDatagrams(limit: Int) {
    let log = onSocketLoop { loop, log in
      let (end, passed) = try pipeEnds()
      var options = DatagramSocket.Options()
      options.maximumDescriptorCount = limit
      let seen = Box<[String]>([])
      let server = try DatagramSocket(boundTo: socketAddress("unix:@"), options: options) { _, event in
        guard case .received(let bytes, let envelope) = event else { return }
        let counts = "\(envelope.descriptors.count)+\(envelope.droppedDescriptorCount)"
        seen.value.append("\(bytes.byteCount):\(counts)")
        if seen.value.count == 12 { loop.stop() }
      }
      let client = try DatagramSocket(boundTo: nil, connectedTo: server.localAddress())
      for index in 1...12 {
        _ = try client.withDescriptor { number in
          try pass(
            index % 4 == 0 ? [passed, passed, passed] : [], with: Array(repeating: 0, count: index), by: number)
        }
        // The first datagrams are received one by one, and the last four together.
        guard index == 8 else { continue }
        try loop.add(server, forMode: .default)
        _ = loop.run(mode: .default, for: .zero)
      }
      close(passed)
      loop.runUntilStopped()
      log.write(seen.value.filter { !$0.hasSuffix("0+0") }.joined(separator: " "))
      log.write("\(isAtEnd(end))")
      close(end)
      for socket in [server, client] { socket.invalidate() }
    }
    let counts = limit == 0 ? "0+3" : "2+1"
    #expect(log == "4:\(counts) 8:\(counts) 12:\(counts) true")
  }

  @Test("a peer is rejected if hundreds of its descriptors wait to be closed")
  func hostile() throws {
    let closing = ClosingCount()
    let shares = (0..<257).map { _ in ClosingCount.Share(closing) }
    #expect(closing.isExceeded)
    withExtendedLifetime(shares) {}
  }

  @Test("a socket file left by a killed receiver is replaced only on request")
  func staleFile() throws {
    let address = try SocketAddress(path: socketPath())
    let path = try #require(address.path)
    defer { unlink(path) }
    var keeping = DatagramSocket.Options()
    keeping.removesFile = false
    var replacing = DatagramSocket.Options()
    replacing.replacesStaleFile = true
    let old = try DatagramSocket(boundTo: address, options: keeping)
    func failure(_ options: DatagramSocket.Options) -> String {
      do throws(DatagramError) {
        try DatagramSocket(boundTo: address, options: options).invalidate()
        return "bound"
      } catch {
        guard case .system(let error, _) = error else { return "\(error)" }
        return "\(error.call):\(error.number)"
      }
    }
    // A receiver is bound to the path.
    #expect(failure(replacing) == "bind:\(EADDRINUSE)")
    old.invalidate()
    #expect(failure(keeping) == "bind:\(EADDRINUSE)")
    #expect(failure(replacing) == "bound")
    // A socket that listens for connections is not mistaken for an abandoned one.
    let listener = try ListeningSocket(at: address)
    #expect(failure(replacing) == "bind:\(EADDRINUSE)")
    listener.invalidate()
  }
}

private func clock_gettime_nanoseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_REALTIME, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
