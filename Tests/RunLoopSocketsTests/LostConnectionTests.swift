// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("Lost connections", .timeLimit(.minutes(20)))
struct LostConnectionTests {
  @Test("every byte that the kernel has received is delivered before the error", arguments: Loss.all)
  func delivery(loss: Loss) async throws {
    let (near, far) = try connectedPair()
    let contexts = loss.isSecured ? try (client: TLSContext.client(), server: TLSContext.server()) : nil
    let sent = (0..<150_000).map { UInt8(truncatingIfNeeded: $0 / 100) }
    let outcome = await onOtherLoop { loop, log in
      let session = try contexts.map {
        loss.isServer ? try TLSSession($0.client, serverName: "localhost") : try TLSSession($0.server)
      }
      let peer = Peer(far, session)
      let reader = try Reader(
        loss, near, contexts.map { loss.isServer ? $0.server : $0.client }, reacts: loss.moment == .idle, on: loop)
      peer.shakeHands(with: reader, on: loop)
      if loss.moment == .idle {
        reader.start()
        let thread = startThread { peer.finish(sent, loss.end) }
        loop.runUntilStopped()
        thread.result()
      } else {
        peer.finish(sent, loss.end)
        awaitEnd(of: near, loss.end)
        switch loss.failure {
        case .write, .record:
          // A peer that has ended responds with a reset.
          while reader.write() { if loss.end == .fin { awaitEnd(of: near, .rst) } }
        case .shutDown: reader.shutDown()
        case .ticket: break
        }
        reader.start()
        loop.runUntilStopped()
      }
      #expect(reader.received == sent, "\(reader.received.count) bytes")
      log.write(reader.outcome)
      reader.release()
      peer.release()
    }
    // The peer has either shut down its writing side or not.
    #expect(outcome == (loss.end == .fin ? "ended" : "lost"))
  }

  @Test("a reply that arrived with a reset before the loop polled is delivered", arguments: [false, true])
  func beforeConnected(isStream: Bool) async throws {
    let log = await onOtherLoop { loop, log in
      let listener = try ListeningSocket(at: .loopback(port: 0))
      let got = Box("")
      let descriptor: Int32
      if isStream {
        let (input, output) = ByteStream.pair(connectingTo: listener.address)
        input.handler = { _, event in
          switch event {
          case .openCompleted: log.write("connected")
          case .hasBytesAvailable:
            var bytes = [UInt8](repeating: 0, count: 100)
            let count = bytes.withUnsafeMutableBytes { (try? input.read(into: $0)) ?? 0 }
            got.update { $0 += String(decoding: bytes[..<count], as: UTF8.self) }
          case .canAcceptBytes: break
          case .endEncountered, .errorOccurred:
            if case .errorOccurred(.system(let error, _)) = event { log.write("\(error.number)") }
            loop.stop()
          }
        }
        for stream in [input, output] as [ByteStream] {
          try stream.schedule(in: loop, forMode: .default)
          stream.open()
        }
        descriptor = try #require(input.channel?.descriptor.number)
      } else {
        let socket = try loop.connect(listener.address) { _, event in
          if case .received(let bytes) = event { return got.update { $0 += text(bytes) } }
          log.write(event.word)
          if case .closed = event { loop.stop() }
        }
        descriptor = try #require(socket.withDescriptor { $0 })
      }
      let peer = Peer(try acceptedEnd(of: listener), nil)
      peer.finish(Array("go away".utf8), .rst)
      awaitEnd(of: descriptor, .rst)
      loop.runUntilStopped()
      log.write(got.value)
      peer.release()
    }
    #expect(log.hasPrefix("connected "))
    #expect(log.contains("\(ECONNRESET)") && log.hasSuffix("go away"), "\(log)")
  }

  @Test(
    "a handshake fails with the peer's alert, whatever happens to the connection",
    .enabled(if: TLSFiles.isAvailable), arguments: Loss.End.allCases, [false, true])
  func handshake(end: Loss.End, isBusy: Bool) async throws {
    let context = try TLSContext.client()
    let log = await onOtherLoop { loop, log in
      let listener = try ListeningSocket(at: .loopback(port: 0))
      let socket = try Socket(connectingTo: listener.address, tls: context, serverName: "localhost") { _, event in
        log.write(event.cause)
        if case .closed = event { loop.stop() }
      }
      try loop.add(socket, forMode: .default)
      let descriptor = try #require(socket.withDescriptor { $0 })
      let peer = Peer(try acceptedEnd(of: listener), nil)
      // Its first message is either read before the reply or not sent yet.
      if !isBusy { while !peer.receive() { loop.run(mode: .default, for: .zero) } }
      // A fatal alert: handshake failure.
      peer.finish([21, 3, 3, 0, 2, 2, 40], end)
      awaitEnd(of: descriptor, end)
      loop.runUntilStopped()
      peer.release()
    }
    #expect(log == "alert40")
  }

  @Test(
    "every byte is delivered before the error over a Unix socket whose peer has left bytes unread",
    arguments: [Loss.Failure.write, .shutDown], Loss.Receiver.allCases)
  func unix(failure: Loss.Failure, receiver: Loss.Receiver) async throws {
    let (near, far) = try socketPair()
    let sent = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 / 100) }
    let outcome = await onOtherLoop { loop, log in
      let loss = Loss(failure: failure, end: .rst, moment: .busy, receiver: receiver)
      let reader = try Reader(loss, near, nil, reacts: false, on: loop)
      while !reader.isOpen { loop.run(mode: .default, for: .zero) }
      #expect(write(near, "x", 1) == 1)
      #expect(write(far, sent, sent.count) == sent.count)
      close(far)
      awaitEnd(of: near, .rst)
      if failure == .write { while reader.write() {} } else { reader.shutDown() }
      reader.start()
      loop.runUntilStopped()
      #expect(reader.received == sent, "\(reader.received.count) bytes")
      log.write(reader.outcome)
      reader.release()
    }
    #expect(outcome == "lost")
  }

  @Test(
    "a handshake fails with the peer's alert for tasks and streams too", .enabled(if: TLSFiles.isAvailable),
    arguments: Loss.End.allCases, [false, true])
  func handshakeOfOthers(end: Loss.End, isStream: Bool) async throws {
    let context = try TLSContext.client()
    let log = await onOtherLoop { loop, log in
      let listener = try ListeningSocket(at: .loopback(port: 0))
      let socket = try Socket(connectingTo: listener.address, tls: context, serverName: "localhost")
      let (input, output) = try ByteStream.pair(connectingTo: listener.address, tls: context, serverName: "localhost")
      let descriptor: Int32
      if isStream {
        input.handler = { _, event in
          if case .errorOccurred(.tls(let error)) = event { log.write(error.cause.word) }
          loop.stop()
        }
        for stream in [input, output] as [ByteStream] {
          try stream.schedule(in: loop, forMode: .default)
          stream.open()
        }
        descriptor = try #require(input.channel?.descriptor.number)
      } else {
        // Keeps the loop running until the task has its error.
        loop.add(RunLoop.Source {}, forMode: .default)
        try loop.add(socket, forMode: .default)
        Task {
          do {
            _ = try await socket.receive()
          } catch SocketError.tls(let error) {
            log.write(error.cause.word)
          } catch {
            log.write("\(error)")
          }
          loop.perform { RunLoop.current.stop() }
        }
        while !socket.isAwaited { sched_yield() }
        descriptor = try #require(socket.withDescriptor { $0 })
        // The first waiting connection is the socket's.
      }
      if isStream { Peer(try acceptedEnd(of: listener), nil).release() }
      let peer = Peer(try acceptedEnd(of: listener), nil)
      // A fatal alert: handshake failure.
      peer.finish([21, 3, 3, 0, 2, 2, 40], end)
      awaitEnd(of: descriptor, end)
      loop.runUntilStopped()
      peer.release()
      for stream in [input, output] as [ByteStream] { stream.close() }
      socket.invalidate()
    }
    #expect(log == "alert40")
  }

  @Test(
    "a server's alert about the certificate is delivered to a client that writes", .enabled(if: TLSFiles.isAvailable),
    arguments: [false, true])
  func rejectedCertificate(isBusy: Bool) async throws {
    let contexts = try (
      client: TLSContext.client(),
      server: TLSContext.server {
        $0.clientVerification = .required
        $0.clientRoots = [.file(TLSFiles.path("ca.pem"))]
      }
    )
    let (near, far) = try connectedPair()
    let log = await onOtherLoop { loop, log in
      let peer = Peer(far, try TLSSession(contexts.server))
      var options = Socket.Options()
      options.tls = contexts.client
      options.serverName = "localhost"
      let socket = try Socket(takingOver: near, options: options) { socket, event in
        log.write(event.cause)
        switch event {
        case .connected: if !isBusy { _ = try? socket.write([UInt8](repeating: 1, count: 1_000_000)) }
        case .closed: loop.stop()
        default: break
        }
      }
      try loop.add(socket, forMode: .default)
      while peer.isShakingHands {
        loop.run(mode: .default, for: .zero)
        peer.receive()
        // The alert is sent with the reset.
        if peer.isShakingHands { peer.flush() }
      }
      peer.finish([], .rst)
      awaitEnd(of: near, .rst)
      if isBusy { _ = try? socket.write([UInt8](repeating: 1, count: 100_000)) }
      loop.runUntilStopped()
      peer.release()
    }
    // The writer is notified that there will be no room.
    #expect(log == (isBusy ? "connected writable alert116" : "connected alert116"))
  }

  @Test("a writer that has stopped reading until there is room is notified that there will be none")
  func pausedWriter() async throws {
    let (near, far) = try connectedPair()
    let log = await onOtherLoop { loop, log in
      let got = Box(0)
      // It echoes what it receives, as in the documentation.
      let socket = try Socket(takingOver: near) { socket, event in
        switch event {
        case .received(let bytes):
          got.value += bytes.byteCount
          if (try? socket.write(bytes)) != true { socket.pauseReading() }
        case .writable: socket.resumeReading()
        case .ended: socket.shutDown(.write)
        case .closed:
          log.write(event.word)
          loop.stop()
        case .connected, .readable: break
        }
      }
      try loop.add(socket, forMode: .default)
      let peer = Peer(far, nil)
      peer.finish([UInt8](repeating: 1, count: 150_000), .rst)
      awaitEnd(of: near, .rst)
      loop.runUntilStopped()
      log.write("\(got.value)")
      peer.release()
    }
    #expect(log == "closed(send:\(ECONNRESET)) 150000")
  }

  @Test(
    "a paused socket is closed immediately by a failed write, unless bytes wait for its handler",
    arguments: [false, true])
  func paused(bytesWait: Bool) async throws {
    let (near, far) = try connectedPair()
    let log = await onOtherLoop { loop, log in
      let socket = try Socket(takingOver: near) { _, event in
        log.write(event.word)
        if case .closed = event { loop.stop() }
      }
      socket.pauseReading()
      try loop.add(socket, forMode: .default)
      let peer = Peer(far, nil)
      peer.finish(bytesWait ? Array("x".utf8) : [], .rst)
      awaitEnd(of: near, .rst)
      log.write("\((try? socket.write("y")) == false)")
      if bytesWait {
        log.write(socketFailure { _ = try socket.write("y") })
        loop.run(mode: .default, for: .zero)
        log.write("\(socket.isValid)")
        socket.resumeReading()
      }
      loop.runUntilStopped()
      peer.release()
    }
    let reset = "send:\(ECONNRESET)"
    #expect(log == (bytesWait ? "true \(reset) writable true received(x) closed(\(reset))" : "true closed(\(reset))"))
  }

  @Test("a sending task gets the error, and a receiving one first gets the bytes before it")
  func tasks() async throws {
    let (near, far) = try connectedPair()
    let socket = try Socket(takingOver: near)
    let thread = SocketThread()
    try thread.loop.add(socket, forMode: .default)
    let peer = Peer(far, nil)
    peer.finish(Array("x".utf8), .rst)
    awaitEnd(of: near, .rst)
    await #expect(throws: SocketError.self) { try await socket.send(Array("y".utf8)) }
    #expect(try await socket.receive() == Array("x".utf8))
    await #expect(throws: SocketError.self) { try await socket.receive() }
    while socket.isValid { await Task.yield() }
    peer.release()
    thread.stop()
  }

  @Test(
    "a task that reads after the connection was lost gets the end that the peer sent before",
    arguments: TLSFiles.isAvailable ? [false, true] : [false])
  func endBeforeLoss(isSecured: Bool) async throws {
    let (near, far) = try connectedPair()
    let contexts = isSecured ? try (client: TLSContext.client(), server: TLSContext.server()) : nil
    let log = await onOtherLoop { loop, log in
      let peer = Peer(far, try contexts.map { try TLSSession($0.server) })
      let loss = Loss(failure: isSecured ? .record : .write, end: .fin, moment: .busy, receiver: .tasks)
      let reader = try Reader(loss, near, contexts?.client, reacts: false, on: loop)
      peer.shakeHands(with: reader, on: loop)
      peer.finish(Array("x".utf8), .fin)
      awaitEnd(of: near, .fin)
      let socket = try #require(reader.socket.value)
      let receive = {
        Task {
          do {
            log.write(try await socket.receive().map { String(decoding: $0, as: UTF8.self) } ?? "ended")
          } catch {
            log.write("\(error)")
          }
          loop.perform { RunLoop.current.stop() }
        }
        loop.runUntilStopped()
      }
      receive()
      // The peer responds to the first with a reset.
      while reader.write() { awaitEnd(of: near, .rst) }
      receive()
      reader.release()
      peer.release()
    }
    #expect(log == "x ended")
  }

  @Test("a connection to itself is rejected, and its port is free immediately", arguments: [false, true])
  func itself(isSocket: Bool) async throws {
    let (address, holder) = try refusingAddress("127.0.0.1:0")
    let port = try #require(address.port)
    // By chance the system may choose the destination port as the local one. Here it has no choice
    // (IP_LOCAL_PORT_RANGE, from Linux 6.3 on).
    var options = Socket.Options()
    options.socketOptions = [SocketOption(level: Int32(IPPROTO_IP), name: 51, value: Int32(port) << 16 | Int32(port))]
    close(holder)
    let given = options
    let log = await onOtherLoop { loop, log in
      if isSocket {
        do {
          try loop.connect(address, options: given) { _, event in
            log.write(event.word)
            loop.stop()
          }
        } catch SocketError.option {
          return log.write("closed(connect:\(ECONNREFUSED))")
        }
        loop.runUntilStopped()
      } else {
        let descriptor = try OwnedDescriptor.makeStream(address)
        try descriptor.bind(address)
        _ = try descriptor.connect(address)
        guard descriptor.isConnectedToItself(address) else { return }
        let error = descriptor.rejectItself()
        log.write("closed(\(error.call):\(error.number))")
      }
    }
    #expect(log == "closed(connect:\(ECONNREFUSED))")
    #expect(socketFailure { _ = try ListeningSocket(at: .loopback(port: port)) } == "nothing")
  }

  @Test(
    "the kernel's error queue for sent packets does not keep a loop awake",
    arguments: [(0, 11, 1), (1, 37, 1 << 1 | 1 << 4 | 1 << 11)])
  func notes(level: Int, name: Int, value: Int) async throws {
    let option = SocketOption(
      level: level == 0 ? Int32(IPPROTO_IP) : SOL_SOCKET, name: Int32(name), value: Int32(value))
    let (nobody, holder) = try refusingAddress("127.0.0.1:0")
    let log = await onOtherLoop { loop, log in
      var options = DatagramSocket.Options()
      options.socketOptions = [option]
      let failed = Box(false)
      let socket = try DatagramSocket(boundTo: .loopback(port: 0), options: options) { _, event in
        if case .failed = event { failed.value = true }
      }
      try loop.add(socket, forMode: .default)
      let descriptor = try #require(socket.withDescriptor { $0 })
      _ = try socket.send([1], to: nobody)
      // POLLERR: the kernel has recorded the packet's fate.
      var entry = pollfd(fd: descriptor, events: 0, revents: 0)
      #expect(poll(&entry, 1, 60_000) == 1)
      while poll(&entry, 1, 0) == 1 { loop.run(mode: .default, for: .zero) }
      log.write("\(failed.value) \(socket.isValid)")
      socket.invalidate()
    }
    close(holder)
    // One option requests errors, the other the times at which packets were sent.
    #expect(log == "\(level == 0) true")
  }
}
