// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("Back-pressure of sockets", .timeLimit(.minutes(20)))
struct SocketPressureTests {
  @Test("a slow reader makes its writer wait: the queue is bounded, and the writer is notified of room")
  func slowReader() throws {
    let (one, other) = try socketPair()
    let total = 8 << 20
    let log = onVirtualSocketLoop { loop, log in
      var options = Socket.Options()
      options.highWater = 64 * 1024
      options.lowWater = 16 * 1024
      let piece = [UInt8](repeating: 7, count: 10_000)
      let (written, most, received) = (Box(0), Box(0), Box(0))
      let fill: @Sendable (Socket) throws -> Void = { socket in
        var goesOn = true
        while goesOn, written.value < total {
          goesOn = try socket.write(piece)
          written.value += piece.count
          most.value = max(most.value, socket.queuedByteCount)
        }
        if goesOn { socket.shutDown(.write) }
      }
      let writer = try Socket(takingOver: one, options: options) { socket, event in
        guard case .writable = event else { return }
        if socket.queuedByteCount > 16 * 1024 { log.write("too early") }
        do { try fill(socket) } catch { log.write("\(error)") }
      }
      let reader = try Socket(takingOver: other) { socket, event in
        if case .received(let bytes) = event { received.value += bytes.byteCount }
        if case .ended = event { loop.stop() }
      }
      try loop.add(writer, forMode: .default)
      try loop.add(reader, forMode: .default)
      reader.pauseReading()
      try fill(writer)
      // Now the queue is full, and stays full as long as nothing is read.
      log.write(socketFailure { try writer.write("x") })
      log.write("\(loop.run(mode: .default, for: .milliseconds(5)))")
      log.write("\(received.value) \(writer.queuedByteCount >= 64 * 1024)")
      reader.resumeReading()
      loop.runUntilStopped()
      log.write("\(received.value == written.value) \(most.value < 64 * 1024 + piece.count)")
    }
    #expect(log == "\(SocketError.bufferFull(limit: 64 * 1024)) timedOut 0 true true true")
  }

  @Test("the queue keeps the order of bytes, however they are added and removed")
  func queue() {
    var queue = ByteQueue()
    var random = SystemRandomNumberGenerator()
    var (next, expected): (UInt8, UInt8) = (0, 0)
    for _ in 0..<5000 {
      if Bool.random(using: &random) {
        let bytes = (0..<Int.random(in: 0..<200, using: &random)).map { _ in
          defer { next &+= 1 }
          return next
        }
        bytes.withUnsafeBytes { queue.append($0) }
      } else {
        let count = Int.random(in: 0...queue.count, using: &random)
        queue.withBytes { bytes in
          for index in 0..<count {
            #expect(bytes[index] == expected)
            expected &+= 1
          }
        }
        queue.removeFirst(count)
      }
      #expect(UInt8(truncatingIfNeeded: queue.count) == next &- expected)
    }
  }

  @Test("an echo server whose client does not read stops reading too, and loses nothing")
  func echo() {
    let total = 4 << 20
    let log = onSocketLoop { loop, log in
      let most = Box(0)
      var listening = ListeningSocket.Options()
      listening.accepted.highWater = 32 * 1024
      listening.accepted.lowWater = 8 * 1024
      let listener = try loop.listen(options: listening) { socket, event in
        switch event {
        case .received(let bytes):
          if (try? socket.write(bytes)) != true { socket.pauseReading() }
          most.value = max(most.value, socket.queuedByteCount)
        case .writable: socket.resumeReading()
        case .ended: socket.shutDown(.write)
        default: break
        }
      }
      var options = Socket.Options()
      options.highWater = 2 * total
      let received = Box(0)
      let client = try loop.connect(listener.address, options: options) { socket, event in
        if case .received(let bytes) = event { received.value += bytes.byteCount }
        if case .ended = event { loop.stop() }
      }
      client.pauseReading()
      try client.write([UInt8](repeating: 1, count: total))
      client.shutDown(.write)
      // Until the kernel's buffers are full, and no more bytes move.
      var (before, now) = (-1, total)
      while now != before {
        before = now
        loop.run(mode: .default, for: .milliseconds(20))
        now = client.queuedByteCount
      }
      log.write("\(received.value)")
      client.resumeReading()
      loop.runUntilStopped()
      log.write("\(received.value == total) \(most.value < 32 * 1024 + ReceiveBuffers.single.size)")
    }
    #expect(log == "0 true true")
  }

  @Test("a readiness handler reads as much as it likes, and is notified only once until it reads")
  func onRequest() throws {
    let (one, other) = try socketPair()
    let log = onVirtualSocketLoop { loop, log in
      var options = Socket.Options()
      options.delivery = .readiness
      let socket = try Socket(takingOver: one, options: options) { _, event in
        log.write(event.word)
        if case .closed = event { loop.stop() }
      }
      try loop.add(socket, forMode: .default)
      let read = { () throws -> String in
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 2, alignment: 1)
        defer { buffer.deallocate() }
        guard let count = try socket.read(into: buffer) else { return "nil" }
        return String(decoding: buffer[..<count], as: UTF8.self)
      }
      log.write(try read())
      _ = write(other, "abc", 3)
      for _ in 0..<2 { log.write("\(loop.run(mode: .default, for: .milliseconds(1)))") }
      log.write(try read())
      loop.run(mode: .default, for: .milliseconds(1))
      log.write(try read())
      log.write(try read())
      hangUp(other)
      loop.run(mode: .default, for: .milliseconds(1))
      log.write("[\(try read())]")
      socket.shutDown(.write)
      log.write("\(loop.runUntilStopped())")
    }
    #expect(log == "nil readable timedOut timedOut ab readable c nil readable [] closed stopped")
  }

  @Test("a socket that is not read costs its loop nothing, whatever its peer does")
  func pausedIsQuiet() throws {
    let (one, other) = try socketPair()
    let log = onVirtualSocketLoop { loop, log in
      let socket = try Socket(takingOver: one) { _, event in log.write(event.word) }
      try loop.add(socket, forMode: .default)
      socket.pauseReading()
      _ = write(other, "x", 1)
      hangUp(other)
      let passes = Box(0)
      loop.add(RunLoop.Observer(activities: .beforeTimers) { _, _ in passes.value += 1 }, forMode: .default)
      loop.run(mode: .default, for: .milliseconds(20))
      log.write("\(passes.value < 5)")
      socket.resumeReading()
      loop.run(mode: .default, for: .milliseconds(20))
    }
    #expect(log == "true received(x) ended closed")
  }
}
