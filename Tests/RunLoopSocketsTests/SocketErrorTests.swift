// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("The contents of socket errors", .timeLimit(.minutes(20)))
struct SocketErrorTests {
  @Test(
    "a rejected connection names its address, for a socket and both streams",
    arguments: ["127.0.0.1:0", "[::1]:0"])
  func rejected(kind: String) throws {
    let (address, descriptor) = try refusingAddress(kind)
    defer { close(descriptor) }
    let log = onSocketLoop { loop, log in
      try loop.connect(address) { _, event in if case .closed(let error?) = event { log.write("\(error)") } }
      loop.runUntilStopped()
      let (input, output) = ByteStream.pair(connectingTo: address)
      for stream in [input, output] as [ByteStream] {
        stream.handler = { stream, event in
          if case .errorOccurred(let error) = event { log.write("\(error)") }
          stream.close()
        }
        try stream.schedule(in: loop, forMode: .default)
        stream.open()
      }
      loop.runUntilStopped()
    }
    let text = "\(address): connect: Connection refused (\(ECONNREFUSED))"
    #expect(log == "\(text) \(text) \(text)")
  }

  @Test("a reset names the peer, which a closed socket cannot report")
  func reset() {
    let client = Box<SocketAddress?>(nil)
    let log = onSocketLoop { loop, log in
      let listener = try loop.listen { socket, event in
        guard case .closed(let error) = event else { return }
        log.write(event.word)
        if case .system(_, let address)? = error { log.write("\(address == client.value)") }
        log.write(socketFailure { _ = try socket.remoteAddress() })
        loop.stop()
      }
      try loop.connect(listener.address) { socket, event in
        guard case .connected = event else { return }
        client.value = try? socket.localAddress()
        _ = socket.withDescriptor { number in
          // With this option, closing sends a reset.
          var linger = linger(l_onoff: 1, l_linger: 0)
          setsockopt(number, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
        }
        socket.invalidate()
      }
      loop.runUntilStopped()
    }
    #expect(log == "closed(recv:\(ECONNRESET)) true \(SocketError.invalid)")
  }

  @Test("an unnamed Unix peer is identified by the address of its listener")
  func unnamed() throws {
    let address = try SocketAddress(path: socketPath())
    let log = onVirtualSocketLoop { loop, log in
      var options = ListeningSocket.Options()
      options.accepted.idleTimeout = .seconds(3)
      let listener = try loop.listen(at: address, options: options) { _, event in log.write(event.word) }
      let client = try Socket(connectingTo: address)
      loop.run(mode: .default, for: .seconds(10))
      listener.invalidate()
      client.invalidate()
    }
    #expect(log == "closed(\(address): nothing arrived within 3.0 seconds)")
  }

  @Test("no child process inherits a descriptor that was taken over")
  func inheriting() throws {
    func isKept(_ descriptor: Int32) -> Bool { fcntl(descriptor, F_GETFD) == FD_CLOEXEC }
    func inherited(_ descriptor: Int32) throws -> Int32 {
      try #require(fcntl(descriptor, F_SETFD, 0) == 0)
      return descriptor
    }
    let (first, second, third) = (try socketPair(), try socketPair(), try socketPair())
    let numbers = try [first.0, first.1, second.0, open("/proc/self/stat", O_RDONLY)].map(inherited)
    let socket = try Socket(takingOver: numbers[0])
    let (input, output) = try ByteStream.pair(takingOver: numbers[1])
    let streams = try numbers[2...].map { try InputByteStream(takingOver: $0) }
    #expect(numbers.map(isKept) == [true, true, true, true])
    // A descriptor that is not taken over is unchanged.
    let number = try inherited(third.0)
    #if DEBUG
      let plan = FaultPlan()
      plan.plan(.peerName, .fails(ENOBUFS))
      plan.rule {
        #expect(socketFailure { _ = try Socket(takingOver: number) } == "\(number) getpeername:\(ENOBUFS)")
      }
      #expect(!isKept(number))
      let other = FaultPlan()
      other.plan(.descriptorFlags, .fails(EPERM))
      other.rule {
        #expect(socketFailure { _ = try Socket(takingOver: number) } == "\(number) fcntl:\(EPERM)")
      }
    #endif
    for descriptor in [number, third.1, second.1] { #expect(close(descriptor) == 0) }
    withExtendedLifetime((socket, input, output, streams)) {}
  }

  @Test("an error's text begins with the address, if there is one")
  func text() {
    let reason = SystemError(call: "bind", number: EACCES)
    let address = SocketAddress.loopback(port: 9, family: .ipv6)
    #expect("\(SocketError.system(reason, address: address))" == "[::1]:9: bind: Permission denied (\(EACCES))")
    #expect("\(SocketError.system(reason, address: nil))" == "bind: Permission denied (\(EACCES))")
    #expect(
      "\(SocketError.deadlinePassed(after: .seconds(1), address: address))"
        == "[::1]:9: the deadline of the socket, after 1.0 seconds, has passed")
    #expect(
      "\(SocketError.descriptor(7, reason))" == "descriptor 7 cannot be used: bind: Permission denied (\(EACCES))")
    #expect("\(HostError.system(host: "h", reason))" == "\"h\" cannot be looked up: \(reason)")
    #expect("\(HostError.cancelled(host: "h"))" == "the lookup of \"h\" was cancelled")
    let attempt = HostConnectionError.Attempt(
      address: address, outcome: .failed(.system(SystemError(call: "connect", number: ECONNREFUSED), address: address)))
    #expect("\(attempt)" == "[::1]:9: connect: Connection refused (\(ECONNREFUSED))")
  }
}
