// SPDX-License-Identifier: Apache-2.0

#if DEBUG
  import CRunLoopSystem
  import Glibc
  import RunLoopCore
  import Testing

  import TestSupport

  @testable import RunLoopSockets

  @Suite("Failing system calls of sockets", .timeLimit(.minutes(20)))
  struct SocketFaultTests {
    private func failing(_ call: SystemCall, _ number: Int32) -> FaultPlan {
      let plan = FaultPlan()
      plan.plan(call, .fails(number))
      return plan
    }

    @Test(
      "a call that fails when a socket begins to listen is thrown",
      arguments: [
        (SystemCall.socket, EMFILE), (.socketOption, ENOMEM), (.bind, EACCES), (.listen, EADDRINUSE),
        (.socketName, ENOBUFS),
      ])
    func listening(call: SystemCall, number: Int32) {
      let plan = failing(call, number)
      plan.rule {
        let failure = socketFailure { _ = try ListeningSocket(at: .any(port: 0, family: .ipv6)) }
        #expect(failure == "\(call.rawValue):\(number)")
      }
      #expect(plan.isUsedUp)
    }

    @Test("the file of a socket that cannot listen is removed")
    func file() throws {
      let path = socketPath()
      let address = try SocketAddress(path: path)
      failing(.listen, EADDRINUSE).rule { #expect(socketFailure { _ = try ListeningSocket(at: address) } != "nothing") }
      #expect(access(path, F_OK) == -1)
    }

    @Test(
      "a fault while a stale file is replaced is thrown, and the next attempt succeeds unless the file is gone",
      arguments: [
        (SystemCall.openFile, 0, EACCES), (.lockFile, 0, ENOLCK), (.socket, 1, EMFILE), (.connect, 0, EACCES),
        (.unlink, 0, EROFS), (.bind, 1, EACCES), (.listen, 0, EADDRINUSE),
      ])
    func replacing(call: SystemCall, index: Int, number: Int32) throws {
      let path = socketPath()
      let address = try SocketAddress(path: path)
      var options = ListeningSocket.Options()
      options.removesFile = false
      try ListeningSocket(at: address, options: options).invalidate()
      options.replacesStaleFile = true
      options.removesFile = true
      let plan = FaultPlan()
      for _ in 0..<index { plan.plan(call, nil) }
      plan.plan(call, .fails(number))
      let given = options
      plan.rule {
        let failure = socketFailure { _ = try ListeningSocket(at: address, options: given) }
        // It is unknown then whether a listener uses the file, so the file counts as in use.
        #expect(failure == (call == .connect ? "bind:\(EADDRINUSE)" : "\(call.rawValue):\(number)"))
      }
      #expect(plan.isUsedUp)
      #expect((access(path, F_OK) == 0) == ![.bind, .listen].contains(call))
      let listener = try ListeningSocket(at: address, options: options)
      _ = try Socket(connectingTo: address)
      listener.invalidate()
      #expect(access(path, F_OK) == -1)
    }

    @Test("a lock that another process holds is waited for, at most a tenth of a second")
    func heldLock() throws {
      var options = ListeningSocket.Options()
      options.replacesStaleFile = true
      let given = options
      for (failures, isTaken) in [(99, true), (100, false)] {
        let address = try SocketAddress(path: socketPath())
        let plan = FaultPlan()
        for number in 0..<failures { plan.plan(.lockFile, .fails(number % 2 == 0 ? EWOULDBLOCK : EINTR)) }
        plan.rule {
          let failure = socketFailure { try ListeningSocket(at: address, options: given).invalidate() }
          #expect(failure == (isTaken ? "nothing" : "flock:\(EINTR)"))
        }
        #expect(plan.isUsedUp)
      }
    }

    @Test(
      "a call that fails when a socket begins to connect is thrown",
      arguments: [(SystemCall.socket, EMFILE), (.socketOption, ENOMEM), (.connect, ENETUNREACH)])
    func connecting(call: SystemCall, number: Int32) throws {
      let listener = try ListeningSocket(at: .loopback(port: 0))
      let plan = failing(call, number)
      plan.rule {
        #expect(socketFailure { _ = try Socket(connectingTo: listener.address) } == "\(call.rawValue):\(number)")
      }
      #expect(plan.isUsedUp)
    }

    @Test(
      "a call that fails later closes the socket, and is reported once",
      arguments: [
        (SystemCall.socketOptionRead, ENOMEM), (.streamWrite, EPIPE), (.streamRead, ETIMEDOUT), (.shutDown, ENOTCONN),
      ])
    func later(call: SystemCall, number: Int32) {
      let log = onSocketLoop { loop, log in
        let listener = try loop.listen { socket, event in
          // The other end, to which no fault applies.
          if case .ended = event { socket.shutDown(.write) }
        }
        let plan = failing(call, number)
        let socket = try loop.connect(listener.address) { socket, event in
          log.write(event.word)
          if case .closed = event { loop.stop() }
          guard case .connected = event else { return }
          if call == .streamWrite {
            log.write("\((try? socket.write("x")) == false)")
          } else if call == .shutDown {
            socket.shutDown(.write)
          }
        }
        let peer = Box<Socket?>(nil)
        if call == .streamRead {
          listener.handler = { _, event in
            guard case .accepted(let socket) = event else { return }
            peer.value = socket
            _ = try? socket.write("x")
          }
        }
        _ = plan.rule { loop.runUntilStopped() }
        log.write("\(plan.isUsedUp) \(socket.isValid) \(loop.contains(socket, forMode: .default))")
      }
      let reason = "closed(\(call.rawValue):\(number))"
      let expected: String =
        switch call {
        case .socketOptionRead: reason
        // The other direction continues until the peer ends it.
        case .streamWrite: "connected true writable ended \(reason)"
        case .shutDown: "connected ended \(reason)"
        default: "connected \(reason)"
        }
      #expect(log == "\(expected) true false false")
    }

    @Test("an interrupted call is repeated, and one that would block is made later")
    func again() throws {
      let (one, other) = try socketPair()
      let log = onSocketLoop { loop, log in
        let socket = try Socket(takingOver: one) { _, event in
          log.write(event.word)
          loop.stop()
        }
        try loop.add(socket, forMode: .default)
        let plan = FaultPlan()
        plan.plan(.streamWrite, .fails(EINTR), .fails(EAGAIN))
        plan.plan(.streamRead, .fails(EINTR), .fails(EAGAIN))
        try plan.rule {
          log.write("\(try socket.write("abc")) \(socket.queuedByteCount)")
          _ = write(other, "x", 1)
          loop.runUntilStopped()
        }
        log.write("\(socket.queuedByteCount) \(plan.isUsedUp)")
        var bytes: [UInt8] = [0, 0, 0, 0]
        log.write("\(recv(other, &bytes, 4, 0))")
      }
      close(other)
      #expect(log == "true 3 received(x) 0 true 3")
    }

    @Test(
      "a loop that cannot watch a socket throws, and the socket can be added later",
      arguments: [
        (SystemCall.epollCreate, EMFILE), (.epollControl, ENOSPC),
      ])
    func watching(call: SystemCall, number: Int32) throws {
      let (one, other) = try socketPair()
      let log = onVirtualSocketLoop { loop, log in
        let socket = try Socket(takingOver: one) { _, event in log.write(event.word) }
        failing(call, number).rule {
          log.write("\(socketFailure { try loop.add(socket, forMode: .default) }.contains("(\(number))"))")
        }
        log.write("\(loop.contains(socket, forMode: .default))")
        try loop.add(socket, forMode: .default)
        hangUp(other)
        loop.run(mode: .default, for: .milliseconds(5))
      }
      #expect(log == "true false ended closed")
    }

    @Test(
      "a listener without a free descriptor pauses, reports it once, and continues", arguments: [EMFILE, ENOMEM])
    func exhausted(number: Int32) {
      let log = onSocketLoop { loop, log in
        var options = ListeningSocket.Options()
        options.retryInterval = .milliseconds(20)
        let listener = try ListeningSocket(at: .loopback(port: 0), options: options) { _, event in
          switch event {
          case .accepted: log.write("accepted")
          case .exhausted(let error): return log.write("exhausted(\(error.number))")
          case .closed: log.write("closed")
          }
          loop.stop()
        }
        try loop.add(listener, forMode: .default)
        let socket = try Socket(connectingTo: listener.address)
        let (plan, passes) = (FaultPlan(), Box(0))
        plan.plan(.accept, .fails(number))
        loop.add(RunLoop.Observer(activities: .beforeTimers) { _, _ in passes.value += 1 }, forMode: .default)
        _ = plan.rule { loop.runUntilStopped() }
        log.write("\(passes.value < 6) \(plan.counts[.accept, default: 0] < 4)")
        socket.invalidate()
      }
      #expect(log == "exhausted(\(number)) accepted true true")
    }

    @Test("resuming retries immediately")
    func resumed() {
      let log = onSocketLoop { loop, log in
        var options = ListeningSocket.Options()
        options.retryInterval = .seconds(3600)
        let listener = try ListeningSocket(at: .loopback(port: 0), options: options) { listener, event in
          if case .accepted = event { loop.stop() }
          if case .exhausted = event {
            log.write("exhausted")
            loop.perform { listener.resumeAccepting() }
          }
        }
        try loop.add(listener, forMode: .default)
        let socket = try Socket(connectingTo: listener.address)
        let plan = failing(.accept, ENFILE)
        log.write("\(plan.rule { loop.runUntilStopped() })")
        socket.invalidate()
      }
      #expect(log == "exhausted stopped")
    }

    @Test("a connection lost before it is accepted is skipped, and a permanent error closes the listener")
    func acceptErrors() {
      let own = Box<SocketAddress?>(nil)
      let (number, identity) = (Box<Int32>(-1), Box<ino_t?>(nil))
      let log = onSocketLoop { loop, log in
        let listener = try ListeningSocket(at: .loopback(port: 0)) { _, event in
          switch event {
          case .accepted: log.write("accepted")
          case .exhausted: log.write("exhausted")
          case .closed(let error): log.write("closed(\(error)) \(fileIdentity(number.value) == identity.value)")
          }
          loop.stop()
        }
        try loop.add(listener, forMode: .default)
        own.value = listener.address
        number.value = listener.withDescriptor { $0 } ?? -1
        let found = try #require(fileIdentity(number.value))
        identity.value = found
        let sockets = try (0..<2).map { _ in try Socket(connectingTo: listener.address) }
        let plan = FaultPlan()
        plan.plan(.accept, .fails(ECONNABORTED), .fails(EINTR), nil, .fails(EINVAL))
        _ = plan.rule { loop.runUntilStopped() }
        log.write("\(listener.isValid) \(loop.contains(listener, forMode: .default))")
        for socket in sockets { socket.invalidate() }
      }
      let error = SocketError.system(SystemError(call: "accept4", number: EINVAL), address: own.value)
      #expect(log == "accepted closed(\(error)) false false false")
    }

    @Test("a descriptor that cannot be taken over stays its owner's")
    func takingOver() throws {
      var ends: [Int32] = [0, 0]
      try #require(pipe(&ends) == 0)
      #expect(socketFailure { _ = try Socket(takingOver: ends[0]) } == "\(ends[0]) getpeername:\(ENOTSOCK)")
      #expect(socketFailure { _ = try Socket(takingOver: -1) } == "-1 getpeername:\(EBADF)")
      #expect(socketFailure { _ = try ByteStream.pair(takingOver: ends[0]) } == "\(ends[0]) getpeername:\(ENOTSOCK)")
      for end in ends { #expect(close(end) == 0) }
      for type in [SOCK_DGRAM, SOCK_SEQPACKET] {
        try #require(socketpair(AF_UNIX, Int32(type.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
        #expect(socketFailure { _ = try Socket(takingOver: ends[0]) } == "\(ends[0]) getsockopt:\(EPROTOTYPE)")
        #expect(socketFailure { _ = try ByteStream.pair(takingOver: ends[0]) } == "\(ends[0]) getsockopt:\(EPROTOTYPE)")
        for end in ends { #expect(close(end) == 0) }
      }
    }
  }
#endif
