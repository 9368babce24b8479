// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import RunLoopSystemEvents
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("Datagrams and tasks", .timeLimit(.minutes(20)))
struct DatagramTaskTests {
  @Test("a sequence yields datagrams in order, and receives none before they are requested")
  func sequence() async throws {
    let (thread, loop) = SourceRig.startLoop()
    let receiver = try DatagramSocket(boundTo: .loopback(port: 0))
    try loop.add(receiver, forMode: .default)
    let sender = try DatagramSocket(boundTo: nil, connectedTo: receiver.localAddress())
    for number in 0..<5 { try sender.send([UInt8(number)]) }
    var received: [[UInt8]] = []
    for try await datagram in receiver.datagrams {
      received.append(datagram.bytes)
      #expect(datagram.envelope.sender == (try sender.localAddress()) && !datagram.envelope.isTruncated)
      if received.count == 3 { break }
    }
    // The others wait in the kernel.
    #expect(received == [[0], [1], [2]])
    #expect(try await receiver.receive()?.bytes == [3])
    receiver.invalidate()
    #expect(try await receiver.receive() == nil)
    loop.perform { loop.stop() }
    thread.join()
  }

  @Test(
    "a cancelled task gets nil and loses nothing, a second waiter is rejected, and the loop's end is reported")
  func ends() async throws {
    let (thread, loop) = SourceRig.startLoop()
    let receiver = try DatagramSocket(boundTo: .loopback(port: 0))
    try loop.add(receiver, forMode: .default)
    let cancelled = Task { try await receiver.receive() }
    await yieldUntil { receiver.lock.withLock { receiver.reader.isTaken } }
    await #expect(throws: DatagramError.busy) { _ = try await receiver.receive() }
    cancelled.cancel()
    #expect(try await cancelled.value == nil)
    let sender = try DatagramSocket(boundTo: nil, connectedTo: receiver.localAddress())
    try sender.send([9])
    #expect(try await receiver.receive()?.bytes == [9])
    let waiting = Task { try await receiver.receive() }
    await yieldUntil { receiver.lock.withLock { receiver.reader.isTaken } }
    loop.perform { loop.stop() }
    thread.join()
    await #expect(throws: DatagramError.loop(.loopHasEnded)) { _ = try await waiting.value }
    await #expect(throws: DatagramError.loop(.loopHasEnded)) { _ = try await receiver.receive() }
  }

  @Test(
    "a task sends when there is room, and one that is cancelled before that has sent nothing", arguments: [true, false])
  func room(isConnected: Bool) async throws {
    let (thread, loop) = SourceRig.startLoop()
    let receiver = try DatagramSocket(boundTo: socketAddress("unix:@"))
    let address = try receiver.localAddress()
    let sender = try DatagramSocket(boundTo: socketAddress("unix:@"), connectedTo: isConnected ? address : nil)
    for socket in [receiver, sender] { try loop.add(socket, forMode: .default) }
    let target = isConnected ? nil : address
    var count = 0
    while try sender.send([1], to: target) { count += 1 }
    let cancelled = Task { try await sender.sendWhenRoom([2], to: target) }
    await yieldUntil { sender.lock.withLock { sender.writer.isTaken } }
    cancelled.cancel()
    #expect(try await cancelled.value == false)
    let waiting = Task { try await sender.sendWhenRoom([3], to: target) }
    await yieldUntil { sender.lock.withLock { sender.writer.isTaken } }
    for _ in 0..<count { #expect(try await receiver.receive()?.bytes == [1]) }
    #expect(try await waiting.value)
    #expect(try await receiver.receive()?.bytes == [3])
    loop.perform { loop.stop() }
    thread.join()
  }

  @Test("a handler is notified of room in addition to the tasks that wait for it")
  func roomForBoth() async throws {
    let (thread, loop) = SourceRig.startLoop()
    let receiver = try DatagramSocket(boundTo: socketAddress("unix:@"))
    let rooms = Box(0)
    let sender = try DatagramSocket(
      boundTo: socketAddress("unix:@"), connectedTo: receiver.localAddress()
    ) { _, event in
      if case .writable = event { rooms.value += 1 }
    }
    for socket in [receiver, sender] { try loop.add(socket, forMode: .default) }
    while try sender.send([1]) {}
    let waiting = Task { try await sender.sendWhenRoom([3]) }
    await yieldUntil { sender.lock.withLock { sender.writer.isTaken } }
    while try await receiver.receive()?.bytes == [1] {}
    #expect(try await waiting.value)
    await yieldUntil { rooms.value > 0 }
    loop.perform { loop.stop() }
    thread.join()
  }
}

#if DEBUG
  @Suite("Failing system calls of datagram sockets", .timeLimit(.minutes(20)))
  struct DatagramFaultTests {
    private func failing(_ call: SystemCall, _ numbers: Int32...) -> FaultPlan {
      let plan = FaultPlan()
      for number in numbers { plan.plan(call, .fails(number)) }
      return plan
    }

    @Test(
      "a call that fails during a socket's creation is thrown with its address",
      arguments: [
        (SystemCall.socket, EMFILE), (.socketOption, ENOMEM), (.bind, EACCES), (.connect, ENETUNREACH),
      ])
    func making(call: SystemCall, number: Int32) throws {
      let (own, peer) = (SocketAddress.loopback(port: 0, family: .ipv6), SocketAddress.loopback(port: 9, family: .ipv6))
      let plan = failing(call, number)
      let error = SystemError(call: call.rawValue, number: number)
      _ = plan.rule {
        #expect(throws: DatagramError.system(error, address: call == .connect ? peer : own)) {
          _ = try DatagramSocket(boundTo: own, connectedTo: peer)
        }
      }
      #expect(plan.isUsedUp)
    }

    @Test(
      "a fault while a datagram socket is taken over is thrown, and the descriptor stays its owner's",
      arguments: [(SystemCall.socketOptionRead, ENOBUFS), (.socketName, ENOBUFS), (.descriptorFlags, EPERM)])
    func takingOver(call: SystemCall, number: Int32) {
      let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
      let plan = failing(call, number)
      let error = SystemError(call: call.rawValue, number: number)
      _ = plan.rule {
        #expect(throws: DatagramError.descriptor(descriptor, error)) {
          _ = try DatagramSocket(takingOver: descriptor)
        }
      }
      #expect(plan.isUsedUp && close(descriptor) == 0)
    }

    @Test("an option that cannot be set is part of the error, and the socket's file is removed")
    func options() throws {
      var options = DatagramSocket.Options()
      options.socketOptions = [.broadcast()]
      let error = SystemError(call: "setsockopt", number: EPERM)
      _ = failing(.socketOption, EPERM).rule {
        #expect(throws: DatagramError.option(.broadcast(), error)) {
          _ = try DatagramSocket(boundTo: .loopback(port: 0), options: options)
        }
      }
      let path = socketPath()
      let address = try SocketAddress(path: path)
      options.fileMode = 0o600
      _ = failing(.changeMode, EROFS).rule {
        #expect(throws: DatagramError.system(SystemError(call: "chmod", number: EROFS), address: address)) {
          _ = try DatagramSocket(boundTo: address, options: options)
        }
      }
      #expect(access(path, F_OK) == -1)
    }

    /// Returns the events of a socket with one datagram while receiving fails.
    private func receiving(failing numbers: Int32..., for time: Duration = .seconds(1)) -> String {
      onVirtualSocketLoop { loop, log in
        let plan = FaultPlan()
        for number in numbers { plan.plan(.datagramReceive, .fails(number)) }
        let begin = loop.now
        let own = Box<SocketAddress?>(nil)
        let (number, identity) = (Box<Int32>(-1), Box<ino_t?>(nil))
        let socket = try DatagramSocket(boundTo: .loopback(port: 0)) { _, event in
          switch event {
          case .received: log.write("received@\(loop.now - begin)")
          case .failed(.system(let error, let address)):
            log.write("failed(\(error.call):\(error.number)) \(address == own.value)")
          case .closed(.system(let error, let address)):
            let isOpen = fileIdentity(number.value) == identity.value
            log.write("closed(\(error.call):\(error.number)) \(address == own.value) \(isOpen)")
          case .failed(let error), .closed(let error): log.write("\(error)")
          case .writable: log.write("writable")
          }
        }
        own.value = try socket.localAddress()
        number.value = socket.withDescriptor { $0 } ?? -1
        let found = try #require(fileIdentity(number.value))
        identity.value = found
        try loop.add(socket, forMode: .default)
        try DatagramSocket(boundTo: .any(port: 0)).send([1], to: socket.localAddress())
        let passes = Box(0)
        loop.add(RunLoop.Observer(activities: .beforeTimers) { _, _ in passes.value += 1 }, forMode: .default)
        _ = plan.rule { loop.run(mode: .default, for: time) }
        log.write("\(plan.isUsedUp) \(socket.isValid) \(passes.value < 8)")
      }
    }

    @Test("receiving without memory is retried later, and not in every pass")
    func memory() {
      #expect(
        receiving(failing: ENOMEM) == "failed(recvfrom:\(ENOMEM)) true received@0.1 seconds true true true")
    }

    @Test("a network error is reported and the socket continues; an interrupted receive is repeated")
    func reported() {
      #expect(
        receiving(failing: EINTR, EAGAIN, EHOSTUNREACH)
          == "failed(recvfrom:\(EHOSTUNREACH)) true received@0.0 seconds true true true")
    }

    @Test("an error of a connected socket names its peer")
    func peer() {
      let log = onVirtualSocketLoop { loop, log in
        let peer = try DatagramSocket(boundTo: .loopback(port: 0))
        let address = try peer.localAddress()
        let error = SystemError(call: "sendto", number: ENETDOWN)
        let socket = try DatagramSocket(boundTo: nil, connectedTo: address) { _, event in
          if case .failed(.system(let error, let named)) = event { log.write("\(error.call) \(named == address)") }
        }
        try loop.add(socket, forMode: .default)
        let plan = failing(.datagramSend, ENETDOWN, EMSGSIZE)
        plan.plan(.datagramReceive, .fails(EHOSTUNREACH))
        try peer.send([1], to: socket.localAddress())
        plan.rule {
          #expect(throws: DatagramError.system(error, address: address)) { try socket.send([1]) }
          #expect(throws: DatagramError.tooLong(byteCount: 1, address: address)) { try socket.send([1]) }
          loop.run(mode: .default, for: .seconds(1))
        }
        log.write("\(plan.isUsedUp)")
        // A socket that other code has connected behaves the same.
        guard let copy = socket.withDescriptor({ fcntl($0, F_DUPFD_CLOEXEC, 3) }) else { return log.write("closed") }
        let taken = try DatagramSocket(takingOver: copy)
        _ = failing(.datagramSend, ENETDOWN).rule {
          #expect(throws: DatagramError.system(error, address: address)) { try taken.send([1]) }
        }
      }
      #expect(log == "recvfrom true true")
    }

    @Test("a permanent error of a datagram socket is reported once and closes it")
    func fatal() {
      #expect(receiving(failing: EBADF) == "closed(recvfrom:\(EBADF)) true false true false true")
    }

    @Test("a failed send throws with the address; without room nothing is sent, and room is reported later")
    func sending() {
      let log = onVirtualSocketLoop { loop, log in
        let peer = try DatagramSocket(boundTo: .loopback(port: 0))
        let address = try peer.localAddress()
        let socket = try DatagramSocket(boundTo: .any(port: 0)) { _, event in
          if case .writable = event { log.write("writable") }
        }
        try loop.add(socket, forMode: .default)
        let plan = failing(.datagramSend, EPERM, EINTR, EAGAIN, ENOBUFS)
        plan.rule {
          let error = DatagramError.system(SystemError(call: "sendto", number: EPERM), address: address)
          #expect(throws: error) { try socket.send([1], to: address) }
          for _ in 0..<2 { log.write("\((try? socket.send([1], to: address)) == false)") }
        }
        loop.run(mode: .default, for: .seconds(1))
        log.write("\(try socket.send([1], to: address))")
      }
      #expect(log == "true true writable true")
    }

    @Test(
      "a loop that cannot watch a datagram socket throws, and the socket can be added later",
      arguments: [SystemCall.epollCreate, .epollControl])
    func watching(call: SystemCall) {
      let log = onVirtualSocketLoop { loop, log in
        let socket = try DatagramSocket(boundTo: .loopback(port: 0)) { _, event in
          if case .received = event { log.write("received") }
        }
        failing(call, EMFILE).rule {
          do { try loop.add(socket, forMode: .default) } catch { log.write("thrown") }
        }
        log.write("\(loop.contains(socket, forMode: .default))")
        try loop.add(socket, forMode: .default)
        try DatagramSocket(boundTo: .any(port: 0)).send([1], to: socket.localAddress())
        loop.run(mode: .default, for: .seconds(1))
      }
      #expect(log == "thrown false received")
    }
  }
#endif
