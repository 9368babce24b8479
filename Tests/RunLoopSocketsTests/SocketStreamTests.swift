// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

extension ByteStream.Event {
  fileprivate var word: String {
    switch self {
    case .openCompleted: "open"
    case .hasBytesAvailable: "bytes"
    case .canAcceptBytes: "room"
    case .endEncountered: "end"
    case .errorOccurred(.system(let error, _)): "error(\(error.call):\(error.number))"
    case .errorOccurred(let error): "error(\(error))"
    }
  }
}

extension InputByteStream {
  fileprivate func text(_ count: Int = 100) -> String {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
    defer { buffer.deallocate() }
    do {
      guard let count = try read(into: buffer) else { return "nil" }
      return String(decoding: buffer[..<count], as: UTF8.self)
    } catch {
      return "\(error)"
    }
  }
}

@Suite("Byte streams", .timeLimit(.minutes(20)))
struct SocketStreamTests {
  @Test("a pair of streams connects, writes, reads and reaches its end", arguments: ["127.0.0.1:0", "[::1]:0", "unix"])
  func pair(kind: String) throws {
    let address = try socketAddress(kind)
    let log = onSocketLoop { loop, log in
      let listener = try loop.listen(at: address) { socket, event in
        if case .received(let bytes) = event { _ = try? socket.write(bytes) }
        if case .ended = event { socket.shutDown(.write) }
      }
      let (input, output) = ByteStream.pair(connectingTo: listener.address)
      log.write("\(input.status == .notOpen) \(input.text())")
      output.handler = { stream, event in
        log.write("out:\(event.word)")
        guard case .canAcceptBytes = event, let output = stream as? OutputByteStream else { return }
        log.write(socketFailure { if try output.write(Array("hello".utf8)) != 5 { log.write("less") } })
        // The peer sees the end, and the other stream continues.
        output.close()
      }
      input.handler = { stream, event in
        log.write("in:\(event.word)")
        guard let input = stream as? InputByteStream else { return }
        if case .hasBytesAvailable = event { log.write("[\(input.text())]") }
        if case .endEncountered = event {
          log.write("\(input.status == .atEnd)")
          input.close()
          listener.invalidate()
        }
      }
      // Opened either before or after it is scheduled.
      try output.schedule(in: loop, forMode: .default)
      output.open()
      input.open()
      try input.schedule(in: loop, forMode: .default)
      log.write("\(loop.runUntilStopped()) \(input.status == .closed)")
    }
    let events = log.split(separator: " ").map(String.init)
    let mine = events.filter { !$0.hasPrefix("out:") && $0 != "nothing" }
    #expect(
      mine.joined(separator: " ")
        == "true \(SocketError.invalid) in:open in:bytes [hello] in:bytes [] in:end true finished true")
    #expect(events.filter { $0.hasPrefix("out:") } == ["out:open", "out:room"])
  }

  @Test("if the connection fails, each stream of the pair reports the error once")
  func rejected() throws {
    let (address, descriptor) = try refusingAddress("127.0.0.1:0")
    defer { close(descriptor) }
    let log = onSocketLoop { loop, log in
      let (input, output) = ByteStream.pair(connectingTo: address)
      for stream in [input, output] as [ByteStream] {
        stream.handler = { stream, event in
          log.write(event.word)
          stream.close()
        }
        try stream.schedule(in: loop, forMode: .default)
        stream.open()
      }
      log.write("\(loop.runUntilStopped())")
      log.write(input.text())
    }
    let error = "error(connect:\(ECONNREFUSED))"
    #expect(log == "\(error) \(error) finished \(SocketError.invalid)")
  }

  @Test("an address that is rejected when the stream opens is reported on the loop")
  func refusedAtOnce() throws {
    let address = try SocketAddress(path: socketPath())
    let log = onSocketLoop { loop, log in
      let (input, _) = ByteStream.pair(connectingTo: address)
      input.handler = { stream, event in
        log.write(event.word)
        stream.close()
      }
      try input.schedule(in: loop, forMode: .default)
      loop.add(RunLoop.Source {}, forMode: .default)
      input.open()
      log.write("opened")
      loop.run(mode: .default, for: .milliseconds(1))
    }
    #expect(log == "opened error(connect:\(ENOENT))")
  }

  @Test("a stream that is notified and does not read is not notified again until it has read")
  func toldOnce() throws {
    let (one, other) = try socketPair()
    let log = onVirtualSocketLoop { loop, log in
      let (input, output) = try ByteStream.pair(takingOver: one)
      input.handler = { _, event in log.write(event.word) }
      try input.schedule(in: loop, forMode: .default)
      input.open()
      _ = write(other, "ab", 2)
      for _ in 0..<3 { log.write("\(loop.run(mode: .default, for: .milliseconds(1)))") }
      log.write(input.text(1))
      loop.run(mode: .default, for: .milliseconds(1))
      log.write(input.text(1))
      log.write(input.text(1))
      log.write("\(isPeerClosed(other))")
      output.open()
      output.close()
      log.write("\(isPeerClosed(other))")
      input.close()
    }
    #expect(log == "open bytes timedOut timedOut timedOut a bytes b nil false true")
    #expect(isPeerClosed(other))
    close(other)
  }

  @Test("an output stream reports when there is room again")
  func room() throws {
    let (one, other) = try socketPair()
    let log = onVirtualSocketLoop { loop, log in
      let (_, output) = try ByteStream.pair(takingOver: one)
      try output.schedule(in: loop, forMode: .default)
      output.open()
      loop.run(mode: .default, for: .milliseconds(1))
      let piece = [UInt8](repeating: 0, count: 50_000)
      var written = 0
      while let count = try output.write(piece) { written += count }
      output.handler = { _, event in
        log.write(event.word)
        loop.stop()
      }
      log.write("\(loop.run(mode: .default, for: .milliseconds(5)))")
      var buffer = [UInt8](repeating: 0, count: 1 << 20)
      while written > 0 { written -= recv(other, &buffer, buffer.count, 0) }
      log.write("\(loop.runUntilStopped())")
    }
    #expect(log == "timedOut room stopped")
    close(other)
  }
}
