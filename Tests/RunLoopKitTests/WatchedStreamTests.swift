// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import RunLoopCore
import RunLoopKit
import Synchronization
import TestSupport
import Testing

// The streams of these tests are nonisolated(unsafe) because they are used only on the thread of their loop.

@Suite("Streams of a program's own, over descriptors", .timeLimit(.minutes(20)))
struct WatchedStreamTests {
  /// Runs a body on a thread on virtual time, and returns the log.
  private func log(_ body: @escaping @Sendable (Log, SteppedTime, RunLoop) throws -> Void) throws -> String {
    let log = Log()
    let failure = onVirtualTime { time, loop -> String? in
      do {
        try body(log, time, loop)
        return nil
      } catch {
        return "\(error)"
      }
    }
    try #require(failure == nil)
    return log.text
  }

  @Test("a descriptor's bytes wake the loop, and are reported once until the stream is read")
  func bytes() throws {
    let log = try log { log, time, loop in
      let pipe = try RawPipe(.socket)
      nonisolated(unsafe) let stream = OwnInput(pipe.reading)
      let listener = StreamListener(log) { _, event in if event == .hasBytesAvailable { time.stamp(log, "@") } }
      stream.delegate = listener
      stream.schedule(in: loop, forMode: .default)
      stream.open()
      time.at(.milliseconds(10)) { pipe.write(Array("abc".utf8)) }
      // The descriptor stays readable, but the delegate is not called.
      loop.after(.milliseconds(20)) { _ in stream.read(1, log) }
      loop.after(.milliseconds(30)) { _ in stream.read(8, log) }
      loop.after(.milliseconds(40)) { _ in stream.close() }
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
      time.stamp(log, "@")
    }
    #expect(log == "opened bytes @10 a bytes @20 bc finished @40")
  }

  @Test("a delegate that reads everything sleeps until more bytes arrive")
  func reading() throws {
    let log = try log { log, time, loop in
      let pipe = try RawPipe(.socket)
      nonisolated(unsafe) let stream = OwnInput(pipe.reading)
      let listener = StreamListener(log) { stream, event in if event == .hasBytesAvailable { stream.read(8, log) } }
      stream.delegate = listener
      stream.schedule(in: loop, forMode: .default)
      stream.open()
      for milliseconds in [10, 20] {
        time.at(.milliseconds(milliseconds)) {
          time.stamp(log, "@")
          pipe.write(Array("ab".utf8))
        }
      }
      log.write("\(loop.run(mode: .default, for: .milliseconds(30)))")
      stream.close()
    }
    #expect(log == "opened @10 bytes ab @20 bytes ab timedOut")
  }

  @Test("a descriptor's space is reported once until the stream is written, and again when there is more")
  func space() throws {
    let log = try log { log, time, loop in
      let pipe = try RawPipe(.socket)
      nonisolated(unsafe) let stream = OwnOutput.over(pipe.writing)
      let listener = StreamListener(log) { _, event in if event == .hasSpaceAvailable { time.stamp(log, "@") } }
      stream.delegate = listener
      stream.schedule(in: loop, forMode: .default)
      stream.open()
      loop.after(.milliseconds(10)) { _ in stream.write("abc", log) }
      loop.after(.milliseconds(20)) { _ in
        let chunk = [UInt8](repeating: 0, count: 1 << 16)
        while stream.write(chunk, maxLength: chunk.count) > 0 {}
        log.write("full")
      }
      time.at(.milliseconds(30)) { while !pipe.read(1 << 16).isEmpty {} }
      loop.after(.milliseconds(40)) { _ in stream.close() }
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
    }
    #expect(log == "opened space @0 3 space @10 full space @30 finished")
  }

  @Test("the end of a connection is reported once it has been read, and ends the run")
  func end() throws {
    let log = try log { log, time, loop in
      let pipe = try RawPipe(.socket)
      nonisolated(unsafe) let stream = OwnInput(pipe.reading)
      let listener = StreamListener(log) { stream, event in if event == .hasBytesAvailable { stream.read(8, log) } }
      stream.delegate = listener
      stream.schedule(in: loop, forMode: .default)
      stream.open()
      time.at(.milliseconds(10)) {
        pipe.write(Array("ab".utf8))
        pipe.closeWriting()
        pipe.awaitEnd()
      }
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
      time.stamp(log, "@")
    }
    #expect(log == "opened bytes ab bytes nothing end finished @10")
  }

  @Test("read and write errors are reported, and end the run")
  func errors() throws {
    let log = try log { log, time, loop in
      let pipe = try RawPipe(.socket)
      nonisolated(unsafe) let (input, output) = (OwnInput(pipe.reading), OwnOutput.over(pipe.reading))
      let reader = StreamListener(log) { stream, event in if event == .hasBytesAvailable { stream.read(8, log) } }
      let writer = StreamListener(log)
      (input.delegate, output.delegate) = (reader, writer)
      for stream in [input, output] as [Stream] {
        stream.open()
        stream.schedule(in: loop, forMode: .default)
      }
      loop.after(.milliseconds(10)) { _ in output.write("lost", log) }
      // Data that the other end has not read is lost.
      time.at(.milliseconds(20)) {
        pipe.closeWriting()
        pipe.awaitEnd()
      }
      loop.after(.milliseconds(30)) { _ in output.write("more", log) }
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
      time.stamp(log, "@")
    }
    #expect(log == "opened opened space 4 space bytes failed error failed error finished @30")
  }

  @Test("a removed stream waits for nothing, and in another mode nothing is reported twice")
  func removal() throws {
    let log = try log { log, time, loop in
      let pipe = try RawPipe(.socket)
      let (first, second) = (RunLoop.Mode("first"), RunLoop.Mode("second"))
      for mode in [first, second] { loop.keepAlive(mode) }
      nonisolated(unsafe) let stream = OwnInput(pipe.reading)
      let listener = StreamListener(log)
      stream.delegate = listener
      stream.open()
      stream.schedule(in: loop, forMode: first)
      pipe.write([65, 66])
      func run(_ mode: RunLoop.Mode) { log.write("\(mode): \(loop.run(mode: mode, for: .milliseconds(10)))") }
      run(first)
      stream.remove(from: loop, forMode: first)
      stream.read(1, log)
      run(first)
      stream.schedule(in: loop, forMode: second)
      run(second)
      run(second)
      stream.close()
    }
    #expect(log == "opened bytes first: timedOut A first: timedOut bytes second: timedOut second: timedOut")
  }

  @Test("a stream in the common modes is also served in modes that become common later")
  func commonModes() throws {
    let log = try log { log, time, loop in
      let pipe = try RawPipe(.socket)
      let late = RunLoop.Mode("late")
      nonisolated(unsafe) let stream = OwnInput(pipe.reading)
      let listener = StreamListener(log) { stream, event in if event == .hasBytesAvailable { stream.read(1, log) } }
      stream.delegate = listener
      stream.open()
      stream.schedule(in: loop, forMode: .common)
      for mode in [RunLoop.Mode.default, late] {
        if mode == late { try loop.addCommonMode(mode) }
        pipe.write([65])
        log.write("\(loop.run(mode: mode, for: .milliseconds(10)))")
      }
      stream.close()
    }
    #expect(log == "opened bytes A timedOut bytes A timedOut")
  }

  @Test("without a delegate no event is waited for, and a new delegate is notified of pending events")
  func delegates() throws {
    let log = try log { log, time, loop in
      let pipe = try RawPipe(.socket)
      nonisolated(unsafe) let stream = OwnInput(pipe.reading)
      let first = StreamListener(log) { _, _ in log.write("1") }
      let second = StreamListener(log) { stream, event in
        log.write("2")
        if event == .hasBytesAvailable { stream.read(8, log) }
      }
      stream.delegate = first
      stream.open()
      stream.schedule(in: loop, forMode: .default)
      loop.after(.milliseconds(10)) { _ in stream.delegate = nil }
      time.at(.milliseconds(20)) { pipe.write([65]) }
      loop.after(.milliseconds(30)) { _ in
        time.stamp(log, "@")
        stream.delegate = second
      }
      loop.after(.milliseconds(40)) { _ in stream.delegate = first }
      time.at(.milliseconds(50)) { pipe.write([66]) }
      loop.after(.milliseconds(60)) { _ in stream.close() }
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
    }
    #expect(log == "opened 1 @30 bytes 2 A bytes 1 finished")
  }

  @Test("a delegate set after the opening is notified of the opening")
  func lateDelegate() throws {
    let log = try log { log, time, loop in
      let stream = InputStream(data: Data("hello".utf8))
      stream.open()
      stream.schedule(in: loop, forMode: .default)
      log.write("\(loop.run(mode: .default, for: .milliseconds(10)))")
      let listener = StreamListener(log) { stream, event in if event == .hasBytesAvailable { stream.read(8, log) } }
      stream.delegate = listener
      log.write("\(loop.run(mode: .default, for: .milliseconds(10)))")
    }
    #expect(log == "timedOut opened bytes hello end finished")
  }
}

@Suite("Streams of a program's own, and which descriptor they have", .timeLimit(.minutes(20)))
struct WatchedStreamDescriptorTests {
  @Test("a stream that is opening is asked again when its descriptor is writable")
  func opening() throws {
    let log = Log()
    try onThread {
      let time = SteppedTime()
      let loop = time.makeLoop()
      guard let pipe = try? RawPipe(.socket) else { return log.write("no pipe") }
      // Full, because a connecting socket accepts no data.
      let chunk = [UInt8](repeating: 0, count: 1 << 16)
      while Glibc.write(pipe.writing, chunk, chunk.count) > 0 {}
      nonisolated(unsafe) let stream = OwnInput(pipe.writing)
      stream.hasOpened = { [number = pipe.writing] in isWritableNow(number) }
      let listener = StreamListener(log)
      stream.delegate = listener
      stream.open()
      stream.schedule(in: loop, forMode: .default)
      time.at(.milliseconds(10)) { while !pipe.read(1 << 16).isEmpty {} }
      time.at(.milliseconds(15)) { time.stamp(log, "@") }
      loop.after(.milliseconds(20)) { _ in stream.close() }
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
    }
    #expect(log.text == "opened @15 finished")
  }

  @Test("a ready descriptor that does not open the stream is ignored until the stream reports a change")
  func openingInVain() throws {
    let log = Log()
    try onThread {
      let time = SteppedTime()
      let loop = time.makeLoop()
      guard let pipe = try? RawPipe(.socket) else { return log.write("no pipe") }
      nonisolated(unsafe) let stream = OwnInput(pipe.reading)
      let isOpen = Atomic<Bool>(false)
      stream.hasOpened = { isOpen.load(ordering: .relaxed) }
      let listener = StreamListener(log)
      stream.delegate = listener
      stream.open()
      stream.schedule(in: loop, forMode: .default)
      time.at(.milliseconds(10)) { time.stamp(log, "@") }
      time.at(.milliseconds(20)) {
        isOpen.store(true, ordering: .relaxed)
        stream.reportChange()
      }
      time.at(.milliseconds(25)) { time.stamp(log, "@") }
      log.write("\(loop.run(mode: .default, for: .milliseconds(30)))")
      stream.close()
      stream.hasOpened = nil
    }
    #expect(log.text == "@10 opened @25 timedOut")
  }

  @Test("a stream with a buffer is asked for bytes while it names no descriptor")
  func buffer() throws {
    let log = Log()
    try onThread {
      let time = SteppedTime()
      let loop = time.makeLoop()
      guard let pipe = try? RawPipe(.socket) else { return log.write("no pipe") }
      nonisolated(unsafe) let stream = OwnInput(pipe.reading)
      stream.buffer = Array("xy".utf8)
      let listener = StreamListener(log) { stream, event in if event == .hasBytesAvailable { stream.read(1, log) } }
      stream.delegate = listener
      stream.open()
      stream.schedule(in: loop, forMode: .default)
      time.at(.milliseconds(10)) { pipe.write([65]) }
      log.write("\(loop.run(mode: .default, for: .milliseconds(20)))")
      stream.close()
    }
    #expect(log.text == "opened bytes x bytes y bytes A timedOut")
  }

  @Test("a stream can name another descriptor")
  func otherNumber() throws {
    let log = Log()
    try onThread {
      let time = SteppedTime()
      let loop = time.makeLoop()
      guard let first = try? RawPipe(.socket), let second = try? RawPipe(.socket) else { return log.write("no pipe") }
      nonisolated(unsafe) let stream = OwnInput(first.reading)
      let listener = StreamListener(log) { stream, event in if event == .hasBytesAvailable { stream.read(8, log) } }
      stream.delegate = listener
      stream.open()
      stream.schedule(in: loop, forMode: .default)
      time.at(.milliseconds(10)) {
        stream.number = second.reading
        stream.reportChange()
      }
      time.at(.milliseconds(20)) { first.write([65]) }
      time.at(.milliseconds(30)) { second.write([66]) }
      log.write("\(loop.run(mode: .default, for: .milliseconds(40)))")
      stream.close()
    }
    #expect(log.text == "opened bytes B timedOut")
  }

  @Test("a descriptor that cannot be waited for counts as ready")
  func regularFile() throws {
    let log = Log()
    try onThread {
      let time = SteppedTime()
      let loop = time.makeLoop()
      let path = NSTemporaryDirectory() + "RunLoopKit-\(UUID().uuidString)"
      defer { unlink(path) }
      guard (try? Data("hello".utf8).write(to: URL(fileURLWithPath: path))) != nil else { return log.write("no file") }
      let number = open(path, O_RDONLY)
      defer { close(number) }
      nonisolated(unsafe) let stream = OwnInput(number)
      let listener = StreamListener(log) { stream, event in if event == .hasBytesAvailable { stream.read(3, log) } }
      stream.delegate = listener
      stream.open()
      stream.schedule(in: loop, forMode: .default)
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
    }
    #expect(log.text == "opened bytes hel bytes lo bytes nothing end finished")
  }

  @Test("a stream closed by its delegate can close its descriptor, and is released")
  func closing() throws {
    let log = Log()
    try onThread {
      let time = SteppedTime()
      let loop = time.makeLoop()
      guard let pipe = try? RawPipe(.socket) else { return log.write("no pipe") }
      weak var held: OwnInput?
      let listener = StreamListener(log) { stream, event in if event == .hasBytesAvailable { stream.close() } }
      do {
        let stream = OwnInput(pipe.reading)
        stream.onClose = { pipe.closeReading() }
        held = stream
        stream.delegate = listener
        stream.open()
        stream.schedule(in: loop, forMode: .default)
      }
      pipe.write([65])
      log.write("\(loop.run(mode: .default, for: .seconds(1)))")
      time.stamp(log, "@")
      log.write(held == nil ? "gone" : "held")
    }
    #expect(log.text == "opened bytes finished @0 gone")
  }
}

private func isWritableNow(_ descriptor: Int32) -> Bool {
  var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
  return poll(&entry, 1, 0) == 1 && entry.revents & Int16(POLLOUT) != 0
}
