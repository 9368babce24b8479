// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import RunLoopSystemEvents
import Testing
import TestSupport

@testable import RunLoopSockets

/// A loop on its own thread, for tasks.
final class SocketThread: Sendable {
  let loop: RunLoop
  private let thread: StartedThread<Void>

  init() {
    let made = Box<RunLoop?>(nil)
    thread = startThread {
      let loop = RunLoop.current
      loop.add(RunLoop.Source {}, forMode: .default)
      made.value = loop
      loop.runUntilStopped()
    }
    waitUntil { made.value != nil }
    guard let loop = made.value else { preconditionFailure("the thread has no loop") }
    self.loop = loop
  }

  func stop() {
    // A stop before the run is forgotten; a block is not.
    let loop = loop
    loop.perform { loop.stop() }
    thread.result()
  }
}

@Suite("Sockets and tasks", .timeLimit(.minutes(20)))
struct SocketTaskTests {
  @Test("waiting and later tasks are notified when the loop's thread ends, and another loop continues")
  func loopEnds() async throws {
    let thread = SocketThread()
    let listener = try ListeningSocket(at: .loopback(port: 0))
    try thread.loop.add(listener, forMode: .default)
    let client = try Socket(connectingTo: listener.address)
    try thread.loop.add(client, forMode: .default)
    let accepting = try #require(try await listener.accept())
    try thread.loop.add(accepting, forMode: .default)
    let waits = [
      Task<SocketError?, Never> { await failure { _ = try await client.receive() } },
      Task<SocketError?, Never> { await failure { _ = try await listener.accept() } },
    ]
    while !client.isAwaited || !listener.isAwaited { await Task.yield() }
    thread.stop()
    for wait in waits { #expect(await wait.value == .loop(.loopHasEnded)) }
    #expect(await failure { _ = try await accepting.receive() } == .loop(.loopHasEnded))
    let next = SocketThread()
    try next.loop.add(client, forMode: .default)
    try next.loop.add(accepting, forMode: .default)
    try await accepting.send([7])
    #expect(try await client.receive() == [7])
    next.stop()
  }

  @Test("waiting for a socket in no loop is an error, as is sending before it is connected")
  func noLoop() async throws {
    let listener = try ListeningSocket(at: .loopback(port: 0))
    let client = try Socket(connectingTo: listener.address)
    let datagrams = try DatagramSocket(boundTo: .loopback(port: 0))
    #expect(await failure { _ = try await listener.accept() } == .loop(.itemIsInNoLoop))
    #expect(await failure { _ = try await client.receive() } == .loop(.itemIsInNoLoop))
    #expect(await failure { try await client.send([1]) } == .loop(.itemIsInNoLoop))
    await #expect(throws: DatagramError.loop(.itemIsInNoLoop)) { try await datagrams.receive() }
    // The error has lost nothing.
    let thread = SocketThread()
    try thread.loop.add(listener, forMode: .default)
    try thread.loop.add(client, forMode: .default)
    let accepted = try #require(try await listener.accept())
    try thread.loop.add(accepted, forMode: .default)
    try await client.send([2])
    #expect(try await accepted.receive() == [2])
    thread.stop()
  }

  @Test("tasks get the error that ended a connection before they waited, each time, until the socket is invalidated")
  func endedBefore() async throws {
    let (address, descriptor) = try refusingAddress("127.0.0.1:0")
    defer { close(descriptor) }
    let thread = SocketThread()
    let socket = try Socket(connectingTo: address)
    try thread.loop.add(socket, forMode: .default)
    while socket.isValid || !socket.lock.withLock({ socket.state.phase == .closed }) { await Task.yield() }
    let reason = SocketError.system(SystemError(call: "connect", number: ECONNREFUSED), address: address)
    for _ in 0..<2 {
      #expect(await failure { _ = try await socket.receive() } == reason)
      #expect(await failure { try await socket.send([1]) } == reason)
    }
    #expect(await failure { for try await _ in socket.chunks {} } == reason)
    let invalid = try Socket(connectingTo: address)
    invalid.invalidate()
    #expect(await failure { _ = try await invalid.receive() } == .invalid)
    thread.stop()
  }

  @Test("tasks get the error that closed a listening or datagram socket before they waited")
  func closedBefore() async throws {
    let thread = SocketThread()
    let listener = try ListeningSocket(at: .loopback(port: 0)) { _, _ in }
    // Both sides, after which the system accepts nothing, and says so.
    listener.withDescriptor { _ = shutdown($0, Int32(SHUT_RDWR)) }
    try thread.loop.add(listener, forMode: .default)
    while listener.isValid { await Task.yield() }
    let reason = SocketError.system(SystemError(call: "accept4", number: EINVAL), address: listener.address)
    for _ in 0..<2 { #expect(await failure { _ = try await listener.accept() } == reason) }
    #expect(await failure { for try await _ in listener.connections {} } == reason)

    let datagrams = try DatagramSocket(boundTo: .loopback(port: 0))
    try thread.loop.add(datagrams, forMode: .default)
    let loss = RunLoopError.cannotWatch(descriptor: 0, SystemError(call: "epoll_ctl", number: ENOMEM))
    datagrams.lock.withLock { datagrams.cannotWatch(loss) }
    while !datagrams.lock.withLock({ datagrams.state.phase == .closed }) { await Task.yield() }
    await #expect(throws: DatagramError.loop(loss)) { try await datagrams.receive() }
    #expect(throws: DatagramError.loop(loss)) { try datagrams.send([1]) }
    thread.stop()
  }

  @Test("a wait fails when the item leaves its last loop, and continues while it is in another")
  func leaving() async throws {
    let (first, second) = (SocketThread(), SocketThread())
    let listener = try ListeningSocket(at: .loopback(port: 0))
    let datagrams = try DatagramSocket(boundTo: .loopback(port: 0))
    for thread in [first, second] {
      try thread.loop.add(listener, forMode: .default)
      try thread.loop.add(datagrams, forMode: .default)
    }
    let accepting = Task<SocketError?, Never> { await failure { _ = try await listener.accept() } }
    let receiving = Task { try await datagrams.receive() }
    while !listener.lock.withLock({ listener.acceptor.isTaken }) { await Task.yield() }
    while !datagrams.lock.withLock({ datagrams.reader.isTaken }) { await Task.yield() }
    first.loop.remove(listener, forMode: .default)
    first.loop.remove(datagrams, forMode: .default)
    #expect(listener.lock.withLock { listener.acceptor.isTaken })
    second.loop.remove(listener, forMode: .default)
    second.loop.remove(datagrams, forMode: .default)
    #expect(await accepting.value == .loop(.itemIsInNoLoop))
    await #expect(throws: DatagramError.loop(.itemIsInNoLoop)) { try await receiving.value }
    first.stop()
    second.stop()
  }

  @Test("lines end with a line feed and an optional carriage return, and frames begin with their length")
  func pieces() async throws {
    let (thread, socket, peer) = try servedSocket()
    let other = try Socket(takingOver: peer)
    try thread.loop.add(other, forMode: .default)
    try await socket.send("a\r\n\nb")
    try await socket.send(line: "ü")
    try await socket.send("last\r")
    socket.shutDown(.write)
    var lines: [String] = []
    for try await line in other.lines(upTo: 5) { lines.append(line) }
    #expect(lines == ["a", "", "bü", "last"])
    try await other.send(frame: [1, 2, 3])
    try await other.send(frame: [])
    try await other.send([0, 0, 0, 2, 13])
    other.shutDown(.write)
    var frames = socket.frames(upTo: 3).makeAsyncIterator()
    #expect(try await frames.next() == [1, 2, 3])
    #expect(try await frames.next() == [])
    await #expect(throws: CutFrameError(byteCount: 5)) { try await frames.next() }
    thread.stop()
  }

  @Test("a line or frame that is too long is an error, wherever the chunks end")
  func tooLong() throws {
    let bytes = Array("abcd".utf8)
    for cut in 0..<4 {
      var lines = ByteCutter(limit: 3)
      lines.feed(Array(bytes[..<cut]))
      #expect(try lines.nextLine() == nil)
      lines.feed(Array(bytes[cut...]))
      #expect(throws: PieceTooLongError(limit: 3)) { try lines.nextLine() }
    }
    // The end of a line does not count, also while the rest of it is missing.
    var line = ByteCutter(limit: 3)
    line.feed(Array("abc\r".utf8))
    #expect(try line.nextLine() == nil)
    line.feed(Array("\nabc\r".utf8))
    #expect(try line.nextLine().map { Array($0) } == Array("abc".utf8))
    #expect(try line.nextLine() == nil)
    line.feed(Array("d".utf8))
    #expect(throws: PieceTooLongError(limit: 3)) { try line.nextLine() }
    var frames = ByteCutter(limit: 255)
    frames.feed([0, 0, 1])
    #expect(try frames.nextFrame() == nil)
    frames.feed([0])
    #expect(throws: PieceTooLongError(limit: 255)) { try frames.nextFrame() }
    frames = ByteCutter(limit: .max)
    frames.feed([255, 255, 255, 255])
    #expect(try frames.nextFrame() == nil)
  }

  @Test("concurrent tasks all send, and the bytes of each call stay together")
  func senders() async throws {
    let (thread, socket, peer) = try servedSocket()
    let other = try Socket(takingOver: peer)
    try thread.loop.add(other, forMode: .default)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for sender in UInt8(0)..<8 {
        group.addTask {
          for _ in 0..<20 { try await socket.send(frame: [UInt8](repeating: sender, count: 50_000)) }
        }
      }
      var counts = [Int](repeating: 0, count: 8)
      var frames = other.frames().makeAsyncIterator()
      for _ in 0..<160 {
        let frame = try #require(try await frames.next())
        #expect(frame.count == 50_000 && Set(frame).count == 1)
        counts[Int(frame[0])] += 1
      }
      #expect(counts == [Int](repeating: 20, count: 8))
      try await group.waitForAll()
    }
    thread.stop()
  }

  @Test("a sending task is resumed when its bytes have been sent, even if the writing side ended meanwhile")
  func endedWhileSending() async throws {
    let (thread, socket, peer) = try servedSocket()
    let other = try Socket(takingOver: peer)
    let bytes = [UInt8](repeating: 1, count: 1_000_000)
    let sent = Task<SocketError?, Never> { await failure { try await socket.send(bytes) } }
    await yieldUntil { socket.lock.withLock { socket.writer.isTaken } }
    let late = Task<SocketError?, Never> { await failure { try await socket.send(bytes) } }
    await yieldUntil { socket.lock.withLock { socket.writer.count == 2 } }
    socket.shutDown(.write)
    try thread.loop.add(other, forMode: .default)
    var count = 0
    for try await piece in other.chunks { count += piece.count }
    #expect(count == 1_000_000)
    // The peer, which has not ended, keeps the connection open.
    #expect(await sent.value == nil)
    #expect(await late.value == .closedForWriting)
    #expect(socket.isValid)
    thread.stop()
  }

  /// Creates a socket served by another thread's loop, and returns it with its peer's descriptor.
  private func servedSocket() throws -> (thread: SocketThread, socket: Socket, peer: Int32) {
    let thread = SocketThread()
    let (one, other) = try socketPair()
    let socket = try Socket(takingOver: one)
    try thread.loop.add(socket, forMode: .default)
    return (thread, socket, other)
  }

  private func failure(of body: () async throws -> Void) async -> SocketError? {
    do {
      try await body()
      return nil
    } catch {
      return error as? SocketError
    }
  }

  @Test("a server based on tasks echoes what clients send")
  func echo() async throws {
    let thread = SocketThread()
    let loop = thread.loop
    let listener = try ListeningSocket(at: .loopback(port: 0))
    try loop.add(listener, forMode: .default)
    let server = Task {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for try await connection in listener.connections {
          try loop.add(connection, forMode: .default)
          group.addTask {
            for try await piece in connection.chunks { try await connection.send(piece) }
            connection.shutDown(.write)
          }
        }
        try await group.waitForAll()
      }
    }
    try await withThrowingTaskGroup(of: Int.self) { group in
      for client in 0..<4 {
        group.addTask {
          let socket = try Socket(connectingTo: listener.address)
          try loop.add(socket, forMode: .default)
          let bytes = [UInt8](repeating: UInt8(client), count: 100_000)
          async let sending: Void = { for _ in 0..<10 { try await socket.send(bytes) } }()
          var count = 0
          while count < 1_000_000, let piece = try await socket.receive() {
            #expect(piece.allSatisfy { $0 == client })
            count += piece.count
          }
          try await sending
          socket.shutDown(.write)
          #expect(try await socket.receive() == nil)
          return count
        }
      }
      for try await count in group { #expect(count == 1_000_000) }
    }
    listener.invalidate()
    try await server.value
    thread.stop()
  }

  @Test("a cancelled task stops waiting, and no byte is lost")
  func cancelled() async throws {
    let (thread, socket, other) = try servedSocket()
    let waiting = Task { try await socket.receive() }
    waiting.cancel()
    #expect(try await waiting.value == nil)
    _ = write(other, "x", 1)
    #expect(try await socket.receive() == [120])
    close(other)
    #expect(try await socket.receive() == nil)
    thread.stop()
  }

  @Test("a task that is rejected and cancelled does not affect the one that waits")
  func cancelledAside() async throws {
    let (thread, socket, other) = try servedSocket()
    let waiting = Task { try await socket.receive() }
    while !socket.lock.withLock({ socket.reader.isTaken }) { await Task.yield() }
    await #expect(throws: SocketError.busy) { try await cancelledTask { try await socket.receive() } }
    _ = write(other, "x", 1)
    #expect(try await waiting.value == [120])
    let listener = try ListeningSocket(at: .loopback(port: 0))
    try thread.loop.add(listener, forMode: .default)
    let accepting = Task { try await listener.accept() }
    while !listener.lock.withLock({ listener.acceptor.isTaken }) { await Task.yield() }
    await #expect(throws: SocketError.busy) { try await cancelledTask { try await listener.accept() } }
    let client = try Socket(connectingTo: listener.address)
    #expect(try await accepting.value != nil)
    client.invalidate()
    listener.invalidate()
    socket.invalidate()
    close(other)
    thread.stop()
  }

  /// Returns the result of a task that is cancelled before it begins.
  private func cancelledTask<Value: Sendable>(
    _ body: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      return try await body()
    }
    task.cancel()
    return try await task.value
  }

  @Test("a task may ask for more bytes than can exist")
  func greedy() async throws {
    let (thread, socket, other) = try servedSocket()
    _ = write(other, "x", 1)
    #expect(try await socket.receive(atMost: .max) == [120])
    socket.invalidate()
    close(other)
    thread.stop()
  }

  @Test("an error reaches the waiting task, and later ones find the socket closed")
  func errors() async throws {
    let (thread, socket, other) = try servedSocket()
    let waiting = Task { try await socket.receive() }
    while !socket.lock.withLock({ socket.reader.isTaken }) { await Task.yield() }
    await #expect(throws: SocketError.busy) { try await socket.receive() }
    socket.invalidate()
    await #expect(throws: SocketError.invalid) { try await waiting.value }
    await #expect(throws: SocketError.invalid) { try await socket.receive() }
    await #expect(throws: SocketError.invalid) { try await socket.send([1]) }
    close(other)
    thread.stop()
  }

  @Test("a listening socket that is invalidated ends its sequence")
  func listenerEnds() async throws {
    let thread = SocketThread()
    let listener = try ListeningSocket(at: .loopback(port: 0))
    try thread.loop.add(listener, forMode: .default)
    let waiting = Task { try await listener.accept() }
    while !listener.lock.withLock({ listener.acceptor.isTaken }) { await Task.yield() }
    listener.invalidate()
    #expect(try await waiting.value == nil)
    #expect(try await listener.accept() == nil)
    thread.stop()
  }
}
