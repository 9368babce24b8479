// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets
@testable import RunLoopSystemEvents

/// Returns the system's value of a socket option.
private func systemValue(_ descriptor: Int32, _ level: Int32, _ name: Int32) -> Int32 {
  var value: Int32 = -1
  var length = socklen_t(MemoryLayout<Int32>.size)
  return getsockopt(descriptor, level, name, &value, &length) == 0 ? value : -errno
}

private let tcp = crl_level_tcp

@Suite("Socket options", .timeLimit(.minutes(20)))
struct SocketOptionTests {
  private static let keepAlive = SocketOption.keepAlive(idle: .milliseconds(30_001), interval: .seconds(7), count: 3)

  /// Returns the values that `keepAlive` and a user timeout set.
  private func keptAlive(_ descriptor: Int32) -> [Int32] {
    [
      systemValue(descriptor, SOL_SOCKET, SO_KEEPALIVE), systemValue(descriptor, tcp, crl_option_keep_alive_idle),
      systemValue(descriptor, tcp, crl_option_keep_alive_interval),
      systemValue(descriptor, tcp, crl_option_keep_alive_count), systemValue(descriptor, tcp, crl_option_user_timeout),
    ]
  }

  @Test("options are set before connecting and after accepting, and fractions are rounded up")
  func bothEnds() {
    let log = onSocketLoop { loop, log in
      var options = ListeningSocket.Options()
      options.accepted.socketOptions = [Self.keepAlive, .userTimeout(.microseconds(2_000_001))]
      let listener = try ListeningSocket(at: .loopback(port: 0), options: options) { _, event in
        guard case .accepted(let socket) = event else { return log.write("no connection") }
        log.write("\(socket.withDescriptor(keptAlive) ?? [])")
        loop.stop()
      }
      try loop.add(listener, forMode: .default)
      let socket = try Socket(connectingTo: listener.address, options: options.accepted)
      log.write("\(socket.withDescriptor(keptAlive) ?? [])")
      loop.runUntilStopped()
      try socket.set(.noKeepAlive)
      try socket.set(.noDelay(false))
      let values = socket.withDescriptor {
        [systemValue($0, SOL_SOCKET, SO_KEEPALIVE), systemValue($0, tcp, crl_option_no_delay)]
      }
      log.write("\(values ?? [])")
      socket.invalidate()
      log.write(socketFailure { try socket.set(.noDelay()) })
      log.write("\(socket.withDescriptor { $0 } == nil)")
    }
    let values = "[1, 31, 7, 3, 2001]"
    #expect(log == "\(values) \(values) [0, 0] \(SocketError.invalid) true")
  }

  @Test("the buffers have the requested size, which the system doubles")
  func buffers() throws {
    var options = ListeningSocket.Options()
    options.socketOptions = [.receiveBuffer(bytes: 20_000), .sendBuffer(bytes: 30_000)]
    let listener = try ListeningSocket(at: .loopback(port: 0), options: options)
    let sizes = listener.withDescriptor {
      [systemValue($0, SOL_SOCKET, SO_RCVBUF), systemValue($0, SOL_SOCKET, SO_SNDBUF)]
    }
    #expect(sizes == [40_000, 60_000])
    listener.invalidate()
    #expect(listener.withDescriptor { $0 } == nil)
  }

  @Test("several sockets listen on one port only if all of them request it")
  func reusePort() throws {
    var options = ListeningSocket.Options()
    options.socketOptions = [.reusePort()]
    let first = try ListeningSocket(at: .loopback(port: 0), options: options)
    let second = try ListeningSocket(at: first.address, options: options)
    #expect(second.address == first.address)
    #expect(socketFailure { _ = try ListeningSocket(at: first.address) } == "bind:\(EADDRINUSE)")
    for listener in [first, second] { listener.invalidate() }
  }

  @Test(
    "an option that the system rejects is an error that names it, and no socket is bound or connected",
    arguments: [
      SocketOption.receiveBuffer(bytes: -1), .sendBuffer(bytes: .min), .userTimeout(.seconds(-1)),
      .keepAlive(idle: .zero, interval: .seconds(1), count: 1),
      .keepAlive(idle: .seconds(1), interval: .seconds(40_000), count: 1),
      .keepAlive(idle: .seconds(1), interval: .seconds(1), count: 1000),
      SocketOption(level: tcp, name: crl_option_no_delay, value: []),
    ])
  func rejected(option: SocketOption) throws {
    let error = SocketError.option(option, SystemError(call: "setsockopt", number: EINVAL))
    var options = ListeningSocket.Options()
    options.socketOptions = [option]
    #expect(socketFailure { _ = try ListeningSocket(at: .loopback(port: 0), options: options) } == "\(error)")
    let listener = try ListeningSocket(at: .loopback(port: 0))
    options.accepted.socketOptions = [option]
    let failure = socketFailure { _ = try Socket(connectingTo: listener.address, options: options.accepted) }
    #expect(failure == "\(error)")
    #expect("\(error)".contains(option.description))
    // No client has connected.
    #expect(listener.withDescriptor { crl_socket_accept($0, nil, 0, nil) } == -EAGAIN)
  }

  @Test("a time beyond an option's range is its maximum")
  func longest() {
    let log = onSocketLoop { _, log in
      var options = Socket.Options()
      options.socketOptions = [.userTimeout(.seconds(Int64.max))]
      let listener = try ListeningSocket(at: .loopback(port: 0))
      let socket = try Socket(connectingTo: listener.address, options: options)
      log.write("\(socket.withDescriptor { systemValue($0, tcp, crl_option_user_timeout) } ?? 0)")
    }
    #expect(log == "\(Int32.max)")
  }

  @Test("a connection whose options cannot be set is accepted, and closed with the reason")
  func acceptedWithout() throws {
    let log = onVirtualSocketLoop { loop, log in
      var options = ListeningSocket.Options()
      options.maximumConnectionCount = 1
      options.accepted.socketOptions = [.userTimeout(.seconds(1))]
      let listener = try loop.listen(at: SocketAddress(abstractName: socketPath()), options: options) { _, event in
        log.write(event.word)
      }
      let socket = try loop.connect(listener.address) { _, event in log.write("peer:\(event.word)") }
      loop.run(mode: .default, for: .seconds(1))
      log.write("\(socket.isValid) \(listener.connectionCount)")
    }
    let error = SystemError(call: "setsockopt", number: EOPNOTSUPP)
    let reason = SocketError.option(.userTimeout(.seconds(1)), error)
    #expect(log == "peer:connected closed(\(reason)) peer:ended peer:closed false 0")
  }

  #if DEBUG
    @Test("a failed system call is thrown with its option, and later options are not set")
    func fault() throws {
      let plan = FaultPlan()
      plan.plan(.socketOption, nil, nil, .fails(ENOMEM))
      plan.rule {
        var options = Socket.Options()
        options.socketOptions = [Self.keepAlive]
        let failure = socketFailure { _ = try Socket(connectingTo: .loopback(port: 1), options: options) }
        let error = SystemError(call: "setsockopt", number: ENOMEM)
        #expect(failure == "\(SocketError.option(Self.keepAlive, error))")
      }
      #expect(plan.isUsedUp && plan.counts[.socketOption] == 3 && plan.counts[.connect] == nil)
    }
  #endif
}

@Suite("The process at the other end of a socket", .timeLimit(.minutes(20)))
struct PeerCredentialTests {
  @Test("a peer's process is known with its user, and by a reference that signals no other process")
  func peer() throws {
    let (one, other) = try socketPair()
    defer { close(other) }
    let socket = try Socket(takingOver: one)
    let peer = try socket.peerCredentials()
    #expect(peer.process == getpid() && peer.user == geteuid() && peer.group == getegid() && peer.isSameUser)
    if let reference = peer.reference {
      try reference.send(signal: 0)
      #expect(!reference.hasEnded)
      #expect(throws: SystemError.self) { try reference.send(signal: 1000) }
      #expect(reference.withDescriptor { fcntl($0, F_GETFD) } == FD_CLOEXEC)
    }
    socket.invalidate()
    #expect(socketFailure { _ = try socket.peerCredentials() } == "\(SocketError.invalid)")
  }

  @Test("a TCP socket has no peer process")
  func none() throws {
    let listener = try ListeningSocket(at: .loopback(port: 0))
    let socket = try Socket(connectingTo: listener.address)
    #expect(socketFailure { _ = try socket.peerCredentials() } == "getsockopt:\(EOPNOTSUPP)")
  }

  @Test("a process reference needs a process")
  func noProcess() throws {
    #expect(throws: SystemError.self) { try ProcessReference(process: -1) }
    try ProcessReference(process: getpid()).send(signal: 0)
  }

  #if DEBUG
    @Test("a kernel without peer references leaves them out, and a lack of descriptors is an error")
    func faults() throws {
      let (one, other) = try socketPair()
      defer { close(other) }
      let socket = try Socket(takingOver: one)
      for number in [ENOPROTOOPT, ESRCH, ENODATA, EINVAL] {
        let plan = FaultPlan()
        plan.plan(.socketOptionRead, nil, .fails(number))
        let peer = try plan.rule { try socket.peerCredentials() }
        #expect(peer.reference == nil)
      }
      for faults in [[nil, FaultPlan.Fault.fails(EMFILE)], [.fails(EMFILE)]] {
        let plan = FaultPlan()
        for fault in faults { plan.plan(.socketOptionRead, fault) }
        plan.rule { #expect(socketFailure { _ = try socket.peerCredentials() } == "getsockopt:\(EMFILE)") }
      }
    }
  #endif
}
