// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing
import RunLoopSystemEvents

@testable import RunLoopCore
@testable import RunLoopSockets

/// A loop on its own thread, which ends on request.
private final class EndingLoop: Sendable {
  let loop: RunLoop
  private let thread: StartedThread<Bool>

  init() {
    let made = Notes<RunLoop>()
    thread = startThread {
      let loop = RunLoop.current
      loop.add(RunLoop.Source {}, forMode: .default)
      made.add(loop)
      loop.runUntilStopped()
      return true
    }
    while made.count == 0 { sched_yield() }
    loop = made.all[0]
  }

  func end() {
    loop.perform { RunLoop.current.stop() }
    _ = thread.result()
  }
}

@Suite("Sockets in several loops", .timeLimit(.minutes(20)))
struct SocketPlacesTests {
  @Test("a socket's event pending on a loop that it has left is reported on the next one")
  func leaving() throws {
    let (one, other) = try socketPair()
    let log = onSocketLoop { loop, log in
      let next = EndingLoop()
      let socket = try Socket(takingOver: one) { _, event in
        log.write("\(event.word) \(loop.isCurrent)")
        loop.perform { loop.stop() }
      }
      try loop.add(socket, forMode: .default)
      socket.lock.withLock { socket.close(.busy) }
      loop.add(RunLoop.Source {}, forMode: .default)
      loop.remove(socket, forMode: .default)
      loop.run(mode: .default, for: .zero)
      log.write("left")
      try next.loop.add(socket, forMode: .default)
      loop.runUntilStopped()
      next.end()
    }
    close(other)
    #expect(log == "left closed(\(SocketError.busy)) false")
  }

  @Test("later events of a socket that its handler has moved are reported on the next loop")
  func moving() throws {
    let (one, other) = try socketPair()
    let log = onSocketLoop { loop, log in
      let next = EndingLoop()
      let socket = try Socket(takingOver: one) { socket, event in
        log.write("\(event.word) \(loop.isCurrent)")
        if case .ended = event {
          loop.remove(socket, forMode: .default)
          try? next.loop.add(socket, forMode: .default)
        } else {
          loop.perform { loop.stop() }
        }
      }
      loop.add(RunLoop.Source {}, forMode: .default)
      try loop.add(socket, forMode: .default)
      socket.shutDown(.write)
      close(other)
      loop.runUntilStopped()
      next.end()
    }
    #expect(log == "ended true closed false")
  }

  @Test("a handler that removes its socket is not called until the socket is in a loop again")
  func removing() {
    let log = onSocketLoop { loop, log in
      let listener = try ListeningSocket(at: .loopback(port: 0)) { listener, _ in
        log.write("accepted")
        loop.remove(listener, forMode: .default)
      }
      let clients = try (0..<2).map { _ in try Socket(connectingTo: listener.address) }
      let taken = Notes<UInt8>()
      let datagrams = try DatagramSocket(boundTo: .loopback(port: 0)) { datagrams, event in
        guard case .received(let bytes, _) = event else { return }
        taken.add(bytes.withUnsafeBytes { $0[0] })
        // The first are received one by one, and then several with one call.
        if taken.count == 3 || taken.count > 19 { loop.remove(datagrams, forMode: .default) }
      }
      let sender = try DatagramSocket(boundTo: nil, connectedTo: datagrams.localAddress())
      for number in 0..<UInt8(40) { try sender.send([number]) }
      loop.add(RunLoop.Source {}, forMode: .default)
      for _ in 0..<2 {
        try loop.add(listener, forMode: .default)
        for _ in 0..<3 { loop.run(mode: .default, for: .zero) }
        log.write(".")
      }
      for count in [3] + Array(20...40) {
        try loop.add(datagrams, forMode: .default)
        while taken.count < count { loop.run(mode: .default, for: .milliseconds(1)) }
        for _ in 0..<3 { loop.run(mode: .default, for: .zero) }
        if taken.count != count { log.write("\(taken.count) of \(count)") }
      }
      if taken.all != Array(0..<40) { log.write("\(taken.all)") }
      withExtendedLifetime(clients) {}
    }
    #expect(log == "accepted . accepted .")
  }

  @Test("a stream's event pending on a loop that it has left is reported on the next one")
  func leavingStream() throws {
    let (one, other) = try socketPair()
    let log = onSocketLoop { loop, log in
      let next = EndingLoop()
      let (input, _) = try ByteStream.pair(takingOver: one)
      input.handler = { _, event in
        if event == .openCompleted { return log.write("open") }
        log.write("\(loop.isCurrent)")
        loop.perform { loop.stop() }
      }
      try input.schedule(in: loop, forMode: .default)
      input.open()
      while input.status != .open { loop.run(mode: .default, for: .zero) }
      input.lock.withLock { input.note(.failed(.busy)) }
      loop.add(RunLoop.Source {}, forMode: .default)
      input.remove(from: loop, forMode: .default)
      loop.run(mode: .default, for: .zero)
      log.write("left")
      try input.schedule(in: next.loop, forMode: .default)
      loop.runUntilStopped()
      next.end()
    }
    close(other)
    #expect(log == "open left false")
  }

  @Test("a timeout continues in another loop when the thread of the first ends")
  func timeout() throws {
    let (one, other) = try socketPair()
    let log = onSocketLoop { loop, log in
      let first = EndingLoop()
      var options = Socket.Options()
      options.idleTimeout = .milliseconds(100)
      let socket = try Socket(takingOver: one, options: options) { _, event in
        log.write(event.word)
        loop.stop()
      }
      try first.loop.add(socket, forMode: "not run")
      try loop.add(socket, forMode: .default)
      first.end()
      log.write("\(first.loop.hasEnded)")
      loop.runUntilStopped()
    }
    close(other)
    #expect(log == "true closed(nothing arrived within 0.1 seconds)")
  }

  @Test("a socket whose loops have all ended is timed out by the next, from the original start")
  func laterTimeout() throws {
    let (one, other) = try socketPair()
    let log = onSocketLoop { loop, log in
      let first = EndingLoop()
      var options = Socket.Options()
      options.idleTimeout = .milliseconds(1)
      let socket = try Socket(takingOver: one, options: options) { _, event in
        log.write(event.word)
        loop.stop()
      }
      try first.loop.add(socket, forMode: "not run")
      first.end()
      log.write("\(socket.isValid)")
      try loop.add(socket, forMode: .default)
      loop.runUntilStopped()
    }
    close(other)
    #expect(log == "true closed(nothing arrived within 0.001 seconds)")
  }

  @Test("a socket that leaves one of two loops keeps its timeout in the other only")
  func parting() throws {
    let (one, other) = try socketPair()
    let log = onVirtualSocketLoop { loop, log in
      var options = Socket.Options()
      options.idleTimeout = .seconds(5)
      let socket = try Socket(takingOver: one, options: options) { _, event in log.write(event.word) }
      try loop.add(socket, forMode: "a")
      try loop.add(socket, forMode: "b")
      log.write("\(loop.itemCounts)")
      loop.remove(socket, forMode: "a")
      log.write("\(loop.itemCounts)")
      loop.remove(socket, forMode: "b")
      log.write("\(loop.itemCounts)")
      try loop.add(socket, forMode: "c")
      loop.run(mode: "c", for: .unlimited)
      log.write("\(loop.itemCounts)")
    }
    close(other)
    let (both, none) = ("(timers: 1, sources: 1)", "(timers: 0, sources: 0)")
    #expect(log == "\(both) \(both) \(none) closed(nothing arrived within 5.0 seconds) \(none)")
  }

  #if DEBUG
    @Test("a listener that waits to retry does so in another loop when the thread of the first ends")
    func retry() {
      let log = onSocketLoop { loop, log in
        var options = ListeningSocket.Options()
        options.retryInterval = .milliseconds(50)
        let first = EndingLoop()
        let listener = try ListeningSocket(at: .loopback(port: 0), options: options) { _, event in
          switch event {
          case .exhausted: log.write("exhausted")
          case .accepted: log.write("accepted")
          case .closed: log.write("closed")
          }
          loop.stop()
        }
        try first.loop.add(listener, forMode: "not run")
        try loop.add(listener, forMode: .default)
        let socket = try Socket(connectingTo: listener.address)
        let plan = FaultPlan()
        plan.plan(.accept, .fails(EMFILE))
        _ = plan.rule { loop.runUntilStopped() }
        first.end()
        loop.runUntilStopped()
        socket.invalidate()
        listener.invalidate()
      }
      #expect(log == "exhausted accepted")
    }

    @Test("a write whose rest no loop can send returns false, and the socket is closed")
    func unwatched() throws {
      let (one, other) = try socketPair()
      let log = onVirtualSocketLoop { loop, log in
        let socket = try Socket(takingOver: one) { _, event in log.write(event.word) }
        try loop.add(socket, forMode: .default)
        let plan = FaultPlan()
        plan.plan(.streamWrite, .fails(EAGAIN))
        // The first change of the watched events, and restoring them.
        plan.plan(.epollControl, .fails(ENOMEM), nil)
        let goesOn = try plan.rule { try socket.write("abc") }
        log.write("\(goesOn) \(plan.isUsedUp) \(socket.isValid)")
        loop.run(mode: .default, for: .milliseconds(5))
      }
      close(other)
      let error = SystemError(call: "epoll_ctl", number: ENOMEM)
      #expect(log.hasPrefix("false true false closed("), "\(log)")
      #expect(log.contains("\(error)"), "\(log)")
    }

    @Test("a stream that no loop can watch when it is opened reports that")
    func openUnwatched() throws {
      let (one, other) = try socketPair()
      let log = onVirtualSocketLoop { loop, log in
        let (input, _) = try ByteStream.pair(takingOver: one)
        input.handler = { _, event in
          if case .errorOccurred(.loop) = event { log.write("error") } else { log.write("another") }
        }
        try input.schedule(in: loop, forMode: .default)
        let plan = FaultPlan()
        plan.plan(.epollControl, .fails(ENOSPC))
        plan.plan(.epollCreate, .fails(EMFILE))
        plan.rule { input.open() }
        loop.add(RunLoop.Source {}, forMode: .default)
        loop.run(mode: .default, for: .milliseconds(5))
        if case .failed(.loop) = input.status { log.write("failed") }
      }
      close(other)
      #expect(log == "error failed")
    }
  #endif

  @Test("entering and leaving a place are serialized")
  func race() throws {
    let (one, other) = try socketPair()
    let log = onSocketLoop { loop, log in
      let socket = try Socket(takingOver: one)
      let joiner = startThread { for _ in 0..<2_000 { try? loop.add(socket, forMode: "a") } }
      let parter = startThread { for _ in 0..<2_000 { loop.remove(socket, forMode: "a") } }
      joiner.result()
      parter.result()
      let isNoted = socket.lock.withLock { socket.registrations.contains(loop, "a") }
      log.write("\(isNoted == loop.contains(socket, forMode: "a"))")
      loop.remove(socket, forMode: "a")
      log.write("\(loop.contains(socket, forMode: "a"))")
    }
    close(other)
    #expect(log == "true false")
  }
}
