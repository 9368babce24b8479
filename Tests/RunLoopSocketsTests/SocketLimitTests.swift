// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopSystemEvents
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("Limits of listening sockets", .timeLimit(.minutes(20)))
struct SocketLimitTests {
  @Test("at the limit connections wait, and a closed one makes room for the next")
  func limit() {
    let log = onVirtualSocketLoop { loop, log in
      var options = ListeningSocket.Options()
      options.maximumConnectionCount = 2
      let accepted = Box<[Socket]>([])
      let listener = try loop.listen(at: SocketAddress(abstractName: socketPath()), options: options) { _, _ in }
      listener.handler = { _, event in
        if case .accepted(let socket) = event { accepted.value.append(socket) }
      }
      let clients = try (0..<4).map { _ in try Socket(connectingTo: listener.address) }
      loop.run(mode: .default, for: .seconds(1))
      log.write("\(accepted.value.count)")
      accepted.value[0].invalidate()
      loop.run(mode: .default, for: .seconds(1))
      log.write("\(accepted.value.count)")
      // A connection that is released without being closed makes room too.
      accepted.value.remove(at: 1)
      loop.run(mode: .default, for: .seconds(1))
      log.write("\(accepted.value.count) \(listener.connectionCount)")
      listener.invalidate()
      for socket in accepted.value + clients { socket.invalidate() }
      log.write("\(listener.connectionCount)")
    }
    #expect(log == "2 3 3 2 0")
  }

  @Test("a task that accepts waits at the limit")
  func task() async throws {
    let (thread, loop) = SourceRig.startLoop()
    var options = ListeningSocket.Options()
    options.maximumConnectionCount = 1
    let listener = try ListeningSocket(at: SocketAddress(abstractName: socketPath()), options: options)
    try loop.add(listener, forMode: .default)
    let clients = try (0..<2).map { _ in try Socket(connectingTo: listener.address) }
    let first = try await listener.accept()
    let next = Task { try await listener.accept() }
    await yieldUntil { listener.lock.withLock { listener.acceptor.isTaken } }
    #expect(listener.connectionCount == 1)
    first?.invalidate()
    let second = try await next.value
    #expect(second?.isValid == true)
    listener.invalidate()
    for client in clients { client.invalidate() }
    loop.perform { loop.stop() }
    thread.join()
  }

  @Test("a storm of connections never exceeds the limit, all are served, and no descriptor leaks")
  func storm() {
    let log = onSocketLoop { loop, log in
      var options = ListeningSocket.Options()
      options.maximumConnectionCount = 5
      let (now, most, served) = (Box(0), Box(0), Box(0))
      let count = 300
      let listener = try ListeningSocket(at: .loopback(port: 0), options: options) { _, event in
        guard case .accepted(let socket) = event else { return log.write("no connection") }
        now.value += 1
        most.value = max(most.value, now.value)
        socket.handler = { socket, event in
          if case .ended = event { socket.shutDown(.write) }
          guard case .closed = event else { return }
          now.value -= 1
          served.value += 1
          if served.value == count { loop.stop() }
        }
        do { try loop.add(socket, forMode: .default) } catch { log.write("\(error)") }
      }
      try loop.add(listener, forMode: .default)
      let clients = try (0..<count).map { _ in
        try loop.connect(listener.address) { socket, event in
          if case .connected = event { socket.shutDown(.write) }
        }
      }
      loop.runUntilStopped()
      log.write("\(served.value) \(most.value) \(listener.connectionCount)")
      for client in clients { client.invalidate() }
      listener.invalidate()
    }
    #expect(log == "300 5 0")
  }

  @Test("a peer that sends one byte at a time is closed at the deadline, unless the deadline is lifted")
  func requestDeadline() throws {
    // The peer has no address, and is identified by the listener's.
    let address = try SocketAddress(abstractName: socketPath())
    let log = onVirtualSocketLoop { loop, log in
      var options = ListeningSocket.Options()
      options.requestDeadline = .seconds(10)
      options.accepted.idleTimeout = .seconds(3)
      let begin = loop.now
      let listener = try loop.listen(at: address, options: options) { socket, event in
        switch event {
        case .received(let bytes): if text(bytes) == "!" { socket.setDeadline(after: nil) }
        case .closed(let error): log.write("\(error.map { "\($0)" } ?? "closed") at \(loop.now - begin)")
        default: break
        }
      }
      let slow = try Socket(connectingTo: listener.address)
      let other = try Socket(connectingTo: listener.address)
      for socket in [slow, other] { try loop.add(socket, forMode: .default) }
      loop.schedule(in: .seconds(1), repeating: .seconds(1)) { _ in
        _ = try? slow.write("x")
        _ = try? other.write("!")
      }
      loop.run(mode: .default, for: .seconds(25))
      log.write("\(slow.isValid) \(other.isValid)")
      for socket in [slow, other] { socket.invalidate() }
      listener.invalidate()
    }
    #expect(log == "\(SocketError.deadlinePassed(after: .seconds(10), address: address)) at 10.0 seconds false true")
  }

  @Test("a deadline that is set again counts from then, and continues in the next loop when a loop ends")
  func deadlineAgain() throws {
    let (one, other) = try socketPair()
    defer { close(other) }
    let log = onVirtualSocketLoop { loop, log in
      let begin = loop.now
      let socket = try Socket(takingOver: one) { _, event in log.write("\(event.word) at \(loop.now - begin)") }
      socket.setDeadline(after: .seconds(1))
      try loop.add(socket, forMode: .default)
      loop.schedule(in: .milliseconds(900)) { _ in socket.setDeadline(after: .seconds(5)) }
      loop.run(mode: .default, for: .seconds(2))
      loop.remove(socket, forMode: .default)
      loop.add(RunLoop.Source {}, forMode: .default)
      loop.run(mode: .default, for: .seconds(10))
      log.write("still \(socket.isValid)")
      try loop.add(socket, forMode: .default)
      loop.run(mode: .default, for: .seconds(1))
    }
    let error = SocketError.deadlinePassed(after: .seconds(5), address: nil)
    #expect(log == "still true closed(\(error)) at 12.0 seconds")
  }
}
