// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import RunLoopKit
import RunLoopSockets
import TestSupport
import Testing

// The streams of these tests are nonisolated(unsafe) because they are used only on the thread of their loop.

@Suite("Pairs of streams in Foundation's spelling", .timeLimit(.minutes(20)))
struct StreamPairTests {
  /// An echo server on its own thread, which ends with its client.
  private struct Echo {
    let thread: ResidentThread
    let port: Int

    init() throws {
      thread = try ResidentThread(name: "echo")
      let loop = thread.runLoop
      let listener = try ListeningSocket(at: .loopback(port: 0)) { _, event in
        guard case .accepted(let socket) = event else { return }
        socket.handler = { socket, event in
          if case .received(let bytes) = event { _ = try? socket.write(bytes) }
          if case .ended = event { socket.shutDown(.write) }
        }
        try? loop.add(socket, forMode: .default)
      }
      try loop.add(listener, forMode: .default)
      port = Int(listener.address.port ?? 0)
    }

    func stop() throws {
      thread.stop(.immediately)
      try thread.join()
    }
  }

  /// Runs a body on its own thread, on the system's clock, and returns the log.
  private func log(_ body: @escaping @Sendable (Log, RunLoopKit.RunLoop) throws -> Void) throws -> String {
    let log = Log()
    let thread = try ResidentThread(name: "streams of a test")
    defer { thread.stop(.immediately) }
    try thread.performAndWait { try body(log, RunLoop.current) }
    return log.text
  }

  @Test("a client connects, writes, reads and reaches the end, in the modes in which it is scheduled")
  func client() throws {
    let echo = try Echo()
    let log = try log { log, loop in
      var input: InputStream?
      var output: OutputStream?
      Stream.getStreamsToHost(withName: "localhost", port: echo.port, inputStream: &input, outputStream: &output)
      nonisolated(unsafe) let reader = try #require(input)
      nonisolated(unsafe) let writer = try #require(output)
      let (mine, its) = (Log(), Log())
      let reading = StreamListener(mine) { stream, event in
        mine.write("\(loop.currentMode == RunLoop.Mode("own"))")
        if event == .hasBytesAvailable { stream.read(100, mine) }
        if event == .endEncountered || event == .errorOccurred { loop.stop() }
      }
      let writing = StreamListener(its) { stream, event in
        guard event == .hasSpaceAvailable else { return }
        stream.write("hello", its)
        // The other end reads the end of the stream, and ends too.
        stream.close()
      }
      (reader.delegate, writer.delegate) = (reading, writing)
      for stream in [reader, writer] as [Stream] {
        log.write("\(stream.streamStatus == .notOpen)")
        stream.schedule(in: loop, forMode: RunLoop.Mode("own"))
        stream.open()
      }
      log.write("\(loop.run(mode: RunLoop.Mode("own"), for: .seconds(600)))")
      log.write("[\(mine.text)] [\(its.text)] \(reader.streamStatus == .atEnd) \(writer.streamStatus == .closed)")
      reader.close()
    }
    try echo.stop()
    #expect(
      log == "true true stopped [opened true bytes true hello end true] [opened space 5] true true")
  }

  @Test("without a loop streams block, like Foundation's")
  func waiting() throws {
    let echo = try Echo()
    let log = try log { log, _ in
      var input: InputStream?
      var output: OutputStream?
      Stream.getStreamsToHost(withName: "127.0.0.1", port: echo.port, inputStream: &input, outputStream: &output)
      for stream in [input, output] as [Stream?] { stream?.open() }
      output?.write("abc", log)
      log.write("\(output?.hasSpaceAvailable == true)")
      input?.read(100, log)
      log.write("\(input?.hasBytesAvailable == true)")
      output?.close()
      input?.read(100, log)
      input?.close()
      input?.read(100, log)
    }
    try echo.stop()
    #expect(log == "3 true abc false nothing failed")
  }

  @Test("an unknown host, a missing listener and an invalid port each give a telling error")
  func errors() throws {
    let log = try log { log, loop in
      for (host, port) in [("a..b", 80), ("127.0.0.1", 1), ("127.0.0.1", 65_536)] {
        var made: InputStream?
        Stream.getStreamsToHost(withName: host, port: port, inputStream: &made, outputStream: nil)
        nonisolated(unsafe) let stream = try #require(made)
        let listener = StreamListener(log) { _, _ in loop.stop() }
        stream.delegate = listener
        stream.schedule(in: loop, forMode: .default)
        stream.open()
        loop.runUntilStopped()
        switch stream.streamError {
        case HostConnectionError.lookup?: log.write("lookup")
        case HostConnectionError.failed(let host, let attempts)?: log.write("\(host) \(attempts.count)")
        case let error?: log.write("\(error)")
        case nil: log.write("nothing")
        }
        stream.read(1, log)
        stream.close()
      }
    }
    let none = SocketAddressError.notAPort("65536")
    #expect(log == "error lookup failed error 127.0.0.1 1 failed error \(none) failed")
  }

  @Test("closing the output during the connection attempt ends the connection")
  func closedEarly() throws {
    let echo = try Echo()
    let log = try log { log, _ in
      var input: InputStream?
      var output: OutputStream?
      Stream.getStreamsToHost(withName: "127.0.0.1", port: echo.port, inputStream: &input, outputStream: &output)
      for stream in [input, output] as [Stream?] { stream?.open() }
      output?.close()
      // The other end responds by ending as well.
      input?.read(100, log)
      output?.write("x", log)
    }
    try echo.stop()
    #expect(log == "nothing failed")
  }

  @Test("a peer's reset is an error of the stream, not a signal")
  func reset() throws {
    let log = try log { log, loop in
      let listener = try ListeningSocket(at: .loopback(port: 0))
      var input: InputStream?
      var output: OutputStream?
      Stream.getStreamsToHost(
        withName: "127.0.0.1", port: Int(listener.address.port ?? 0), inputStream: &input, outputStream: &output)
      for stream in [input, output] as [Stream?] { stream?.open() }
      output?.write("x", log)
      // Connections that wait to be accepted are reset.
      listener.invalidate()
      input?.read(1, log)
      log.write("\((input?.streamError as? NSError)?.code == Int(ECONNRESET)) \(input?.streamStatus == .error)")
      output?.write("x", log)
      log.write("\(output?.streamError != nil)")
    }
    #expect(log == "1 failed true true failed true")
  }

  @Test("releasing streams while they connect does no harm")
  func released() throws {
    for _ in 0..<20 {
      var input: InputStream?
      Stream.getStreamsToHost(withName: "127.0.0.1", port: 1, inputStream: &input, outputStream: nil)
      input?.open()
    }
  }

  @Test("bound streams pass bytes through their buffer, which holds no more than its size")
  func bound() throws {
    let log = try log { log, loop in
      var input: InputStream?
      var output: OutputStream?
      Stream.getBoundStreams(withBufferSize: 4, inputStream: &input, outputStream: &output)
      nonisolated(unsafe) let reader = try #require(input)
      nonisolated(unsafe) let writer = try #require(output)
      let reading = StreamListener(log) { stream, event in
        if event == .hasBytesAvailable { stream.read(3, log) }
        if event == .endEncountered { loop.stop() }
      }
      var text = ["abcdef", "gh"]
      nonisolated(unsafe) let rest = withUnsafeMutablePointer(to: &text) { $0 }
      let writing = StreamListener(log) { stream, event in
        guard event == .hasSpaceAvailable else { return }
        if rest.pointee.isEmpty { stream.close() } else { stream.write(rest.pointee.removeFirst(), log) }
      }
      (reader.delegate, writer.delegate) = (reading, writing)
      for stream in [writer, reader] as [Stream] {
        stream.schedule(in: loop, forMode: .default)
        stream.open()
      }
      loop.runUntilStopped()
      reader.read(1, log)
      reader.close()
    }
    // Four of the first six bytes fit; the writer has to send the other two again.
    #expect(log == "opened opened space 4 bytes abc bytes d space 2 space bytes gh end nothing")
  }

  @Test("a writer and a reader on two threads wait for each other, and all bytes arrive in order")
  func threads() throws {
    var input: InputStream?
    var output: OutputStream?
    Stream.getBoundStreams(withBufferSize: 7, inputStream: &input, outputStream: &output)
    let reader = try #require(input)
    nonisolated(unsafe) let writer = try #require(output)
    let sent = (0..<10_000).map { UInt8(truncatingIfNeeded: $0) }
    let thread = try ResidentThread(name: "writer")
    try thread.perform {
      writer.open()
      var place = 0
      while place < sent.count {
        place += sent[place...].withUnsafeBufferPointer { bytes in
          bytes.baseAddress.map { writer.write($0, maxLength: min(11, bytes.count)) } ?? 0
        }
      }
      writer.close()
    }
    reader.open()
    var received: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 5)
    while true {
      let count = reader.read(&buffer, maxLength: buffer.count)
      guard count > 0 else { break }
      received += buffer[..<count]
    }
    #expect(received == sent && reader.streamStatus == .atEnd)
    thread.stop()
    try thread.join()
  }

  @Test("writing to a closed reader is an error with a number, which the delegate receives")
  func broken() throws {
    let log = try log { log, loop in
      var input: InputStream?
      var output: OutputStream?
      Stream.getBoundStreams(withBufferSize: 4, inputStream: &input, outputStream: &output)
      let writer = try #require(output)
      let listener = StreamListener(log) { _, event in if event == .errorOccurred { loop.stop() } }
      writer.delegate = listener
      writer.schedule(in: loop, forMode: .default)
      writer.open()
      input?.open()
      input?.close()
      loop.runUntilStopped()
      writer.write("x", log)
      log.write("\((writer.streamError as? NSError)?.code == Int(EPIPE))")
    }
    #expect(log == "error failed true")
  }
}
