// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

@Suite("Idle timeouts of each direction", .timeLimit(.minutes(20)))
struct SocketIdleTests {
  /// Runs a socket of a pair on virtual time, and returns its events with their milliseconds.
  private func run(
    _ set: (inout Socket.Options) -> Void,
    _ body: @escaping @Sendable (SteppedTime, RunLoop, Socket, Int32) throws -> Void
  ) throws -> String {
    let (one, other) = try socketPair()
    defer { close(other) }
    var options = Socket.Options()
    set(&options)
    let chosen = options
    return onVirtualTime { time, loop in
      let log = Log()
      do {
        let socket = try Socket(takingOver: one, options: chosen) { _, event in
          if case .received(let bytes) = event, bytes.byteCount > 100 { return log.write("much") }
          log.write("\(event.word)@\(time.now.nanoseconds / 1_000_000)")
        }
        try loop.add(socket, forMode: .default)
        try body(time, loop, socket, other)
        loop.run(mode: .default, for: .seconds(1))
        socket.invalidate()
      } catch {
        log.write("\(error)")
      }
      return log.text
    }
  }

  private func idle(_ side: Socket.Side) -> String {
    "closed(\(SocketError.idle(side, after: .milliseconds(50), address: nil)))"
  }

  @Test("a silent peer causes the read timeout, whatever is sent to it")
  func reading() throws {
    let log = try run {
      $0.readTimeout = .milliseconds(50)
    } _: { time, _, socket, other in
      time.at(.milliseconds(30)) { _ = write(other, "x", 1) }
      for at in [40, 60, 75] { time.at(.milliseconds(at)) { _ = try? socket.write("y") } }
    }
    #expect(log == "received(x)@30 \(idle(.read))@80")
  }

  @Test("time in which reading is paused does not count towards the read timeout")
  func pausedReading() throws {
    let log = try run {
      $0.readTimeout = .milliseconds(50)
    } _: { time, _, socket, _ in
      time.at(.milliseconds(20)) { socket.pauseReading() }
      time.at(.milliseconds(200)) { socket.resumeReading() }
    }
    #expect(log == "\(idle(.read))@250")
  }

  @Test("a peer that reads nothing causes the write timeout, unless it reads something in time")
  func writing() throws {
    let log = try run {
      $0.writeTimeout = .milliseconds(50)
    } _: { time, _, socket, other in
      // Bytes that fit in the kernel's buffer are not pending: their time does not count for later bytes.
      _ = try? socket.write("y")
      time.at(.milliseconds(100)) { _ = try? socket.write([UInt8](repeating: 0, count: 1 << 20)) }
      time.at(.milliseconds(140)) {
        withUnsafeTemporaryAllocation(byteCount: 1 << 18, alignment: 1) { room in
          for _ in 0..<4 { _ = crl_socket_receive(other, room.baseAddress, room.count) }
        }
      }
    }
    #expect(log == "\(idle(.write))@190")
  }

  @Test("received bytes are delivered before the write timeout's error")
  func bytesBeforeWriting() throws {
    let log = try run {
      $0.writeTimeout = .milliseconds(50)
    } _: { time, _, socket, other in
      _ = try? socket.write([UInt8](repeating: 0, count: 1 << 20))
      socket.pauseReading()
      _ = write(other, "early", 5)
      time.at(.milliseconds(70)) { socket.resumeReading() }
    }
    #expect(
      log == "writable@50 received(early)@70 \(idle(.write))@100" || log == "received(early)@70 \(idle(.write))@100")
  }

  @Test("a peer that keeps sending and reads nothing causes the write timeout too")
  func floodWhileWriting() throws {
    let log = try run {
      $0.writeTimeout = .milliseconds(50)
    } _: { time, _, socket, other in
      _ = try? socket.write([UInt8](repeating: 0, count: 1 << 20))
      time.at(.milliseconds(49)) { _ = write(other, "a", 1) }
      for at in 50..<200 { time.at(.milliseconds(at)) { _ = write(other, "a", 1) } }
    }
    let last = try #require(log.split(separator: "@").last)
    #expect(log.contains(idle(.write)) && ["50", "100"].contains(String(last)))
  }

  @Test("a waiting task gets the timeout of its direction")
  func tasks() async throws {
    let (one, other) = try socketPair()
    defer { close(other) }
    var options = Socket.Options()
    options.readTimeout = .milliseconds(1)
    let socket = try Socket(takingOver: one, options: options)
    let serving = SocketThread()
    defer { serving.stop() }
    try serving.loop.add(socket, forMode: .default)
    await #expect(throws: SocketError.idle(.read, after: .milliseconds(1), address: nil)) {
      _ = try await socket.receive()
    }
  }
}
