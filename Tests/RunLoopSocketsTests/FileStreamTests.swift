// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopSockets

/// Creates a pipe, whose ends the test owns until it passes them on.
private func makePipe() throws -> (reading: Int32, writing: Int32) {
  var ends: [Int32] = [0, 0]
  try #require(crl_pipe(&ends) == 0)
  return (ends[0], ends[1])
}

private func send(_ text: String, to descriptor: Int32) { _ = write(descriptor, text, text.utf8.count) }

extension InputByteStream {
  /// Reads what is available as text, or returns a description of the result.
  func readText(_ count: Int = 10_000) -> String {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
    defer { buffer.deallocate() }
    do {
      guard let count = try read(into: buffer) else { return "nil" }
      return String(decoding: buffer[..<count], as: UTF8.self)
    } catch {
      return "\(error)"
    }
  }

  /// Logs the stream's events on a loop, reads all bytes, and calls a block at the end.
  func log(_ log: Log, on loop: RunLoop, end: @escaping @Sendable () -> Void = {}) throws {
    handler = { stream, event in
      switch event {
      case .openCompleted: log.write("open")
      case .hasBytesAvailable: log.write("[\((stream as? InputByteStream)?.readText() ?? "")]")
      case .canAcceptBytes: log.write("room")
      case .endEncountered:
        log.write("end")
        end()
      case .errorOccurred(let error):
        log.write("\(error)")
        end()
      }
    }
    try schedule(in: loop, forMode: .default)
    open()
  }
}

@Suite("Streams over pipes, terminals and files", .timeLimit(.minutes(20)))
struct FileStreamTests {
  @Test("a pipe that is read opens, has bytes, and ends with its writer")
  func reading() throws {
    let (reading, writing) = try makePipe()
    let log = onSocketLoop { loop, log in
      let stream = try InputByteStream(takingOver: reading)
      try stream.log(log, on: loop) { loop.stop() }
      loop.drain()
      log.write("\(stream.readText())")
      send("abc", to: writing)
      loop.drain()
      send("d", to: writing)
      loop.drain()
      close(writing)
      // A child process of another test may hold a copy of the end until it has executed its program.
      loop.runUntilStopped()
      log.write("\(stream.status == .atEnd)")
      stream.close()
    }
    #expect(log == "open nil [abc] [d] [] end true")
  }

  @Test("opening is reported before the first bytes, even if the stream is scheduled after it opened")
  func openFirst() throws {
    let (reading, writing) = try makePipe()
    defer { close(writing) }
    send("x", to: writing)
    let log = onVirtualSocketLoop { loop, log in
      let stream = try InputByteStream(takingOver: reading)
      stream.open()
      try stream.log(log, on: loop)
      loop.run(mode: .default, for: .seconds(1))
      stream.close()
    }
    #expect(log == "open [x]")
  }

  @Test("a full pipe has no room until it is read; one without a reader is an error and sends no signal")
  func writing() throws {
    let (reading, writing) = try makePipe()
    let log = onVirtualSocketLoop { loop, log in
      let stream = try OutputByteStream(takingOver: writing)
      let rooms = Box(0)
      stream.handler = { _, event in
        switch event {
        case .canAcceptBytes: rooms.value += 1
        case .openCompleted: log.write("open")
        case .errorOccurred(let error): log.write("\(error)")
        default: log.write("wrong")
        }
      }
      try stream.schedule(in: loop, forMode: .default)
      stream.open()
      loop.run(mode: .default, for: .seconds(1))
      var count = 0
      while let taken = try stream.write([UInt8](repeating: 1, count: 10_000)) { count += taken }
      loop.run(mode: .default, for: .seconds(1))
      log.write("\(count >= 4096) \(rooms.value)")
      var buffer = [UInt8](repeating: 0, count: 1 << 20)
      log.write("\(read(reading, &buffer, buffer.count) == count)")
      loop.run(mode: .default, for: .seconds(1))
      log.write("\(rooms.value)")
      close(reading)
      var failure = "nothing"
      // A child process of another test may hold a copy of the end until it has executed its program.
      waitUntil {
        failure = socketFailure { _ = try stream.write([1]) }
        return failure != "nothing"
      }
      log.write(failure)
      loop.run(mode: .default, for: .seconds(1))
      stream.close()
    }
    let error = SocketError.system(SystemError(call: "write (stream)", number: EPIPE), address: nil)
    #expect(log == "open true 1 true 2 write (stream):\(EPIPE) \(error)")
  }

  @Test("closing a stream closes its descriptor, and a pair's with the second stream")
  func closing() throws {
    let (reading, writing) = try makePipe()
    defer { close(reading) }
    let stream = try OutputByteStream(takingOver: writing)
    stream.open()
    stream.close()
    var byte: UInt8 = 0
    #expect(read(reading, &byte, 1) == 0)
    let (one, other) = try socketPair()
    defer { close(other) }
    let (input, output) = try ByteStream.pair(takingOver: one)
    for stream in [input, output] as [ByteStream] { stream.open() }
    input.close()
    #expect(!isPeerClosed(other))
    output.close()
    #expect(awaitPeerClosed(other))
    withExtendedLifetime((stream, input, output)) {}
  }

  @Test("other users of the pipe keep their blocking mode")
  func shared() throws {
    let (reading, writing) = try makePipe()
    let copy = dup(reading)
    defer { for descriptor in [copy, writing] { close(descriptor) } }
    let stream = try InputByteStream(takingOver: reading)
    stream.open()
    #expect(fcntl(copy, F_GETFL) & O_NONBLOCK == 0)
    #expect(stream.readText() == "nil")
    stream.close()
  }

  @Test("a file is read to its end, and a device that is always ready can be written")
  func files() throws {
    let path = socketPath()
    let file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
    defer { unlink(path) }
    send("some text", to: file)
    try #require(lseek(file, 0, SEEK_SET) == 0)
    let null = open("/dev/null", O_WRONLY | O_CLOEXEC)
    let log = onVirtualSocketLoop { loop, log in
      let input = try InputByteStream(takingOver: file)
      let output = try OutputByteStream(takingOver: null)
      output.handler = { _, event in if case .canAcceptBytes = event { log.write("room") } }
      try output.schedule(in: loop, forMode: .default)
      output.open()
      log.write("\(try output.write([1, 2, 3]) ?? 0)")
      let passes = Box(0)
      loop.add(RunLoop.Observer(activities: .beforeTimers) { _, _ in passes.value += 1 }, forMode: .default)
      loop.run(mode: .default, for: .seconds(1))
      // Always ready, and reported only once.
      log.write("\(passes.value < 5)")
      output.close()
      try input.log(log, on: loop)
      loop.run(mode: .default, for: .seconds(1))
      input.close()
    }
    #expect(log == "3 room true open [some text] [] end")
  }

  @Test("a terminal is a stream of its lines, and keeps blocking for other users")
  func terminal() throws {
    let master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    var (number, lock): (Int32, Int32) = (0, 0)
    // TIOCSPTLCK and TIOCGPTN, whose macros Swift does not import.
    try #require(master >= 0 && ioctl(master, 0x4004_5431, &lock) == 0 && ioctl(master, 0x8004_5430, &number) == 0)
    defer { close(master) }
    let name = "/dev/pts/\(number)"
    let slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)
    let copy = dup(slave)
    defer { close(copy) }
    let log = onSocketLoop { loop, log in
      let stream = try InputByteStream(takingOver: slave)
      try stream.log(log, on: loop) { loop.stop() }
      let reading = stream.handler
      stream.handler = { stream, event in
        reading?(stream, event)
        guard case .hasBytesAvailable = event else { return }
        log.write("\(fcntl(copy, F_GETFL) & O_NONBLOCK)")
        // Control-D ends the input.
        if stream.status == .open { send("\u{4}", to: master) }
      }
      send("line\n", to: master)
      loop.runUntilStopped()
      stream.close()
    }
    #expect(log == "open [line\n] 0 [] 0 end")
  }

  @Test("the near end of a pseudo-terminal is a stream of that terminal, not of a new one")
  func nearEnd() throws {
    let master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    var (number, lock): (Int32, Int32) = (0, 0)
    try #require(master >= 0 && ioctl(master, 0x4004_5431, &lock) == 0 && ioctl(master, 0x8004_5430, &number) == 0)
    let slave = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC)
    defer { close(slave) }
    let log = onSocketLoop { loop, log in
      let stream = try InputByteStream(takingOver: master)
      stream.handler = { stream, event in
        guard case .hasBytesAvailable = event, let stream = stream as? InputByteStream else { return }
        log.write(stream.readText())
        loop.stop()
      }
      try stream.schedule(in: loop, forMode: .default)
      stream.open()
      send("shown", to: slave)
      loop.runUntilStopped()
      log.write(stream.readText())
      stream.close()
    }
    #expect(log == "shown nil")
  }

  @Test("a pseudo-terminal whose other side is closed ends after the bytes written there")
  func terminalEnd() throws {
    let master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    var (number, lock): (Int32, Int32) = (0, 0)
    try #require(master >= 0 && ioctl(master, 0x4004_5431, &lock) == 0 && ioctl(master, 0x8004_5430, &number) == 0)
    let slave = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC)
    let log = onSocketLoop { loop, log in
      let stream = try InputByteStream(takingOver: master)
      try stream.log(log, on: loop) { loop.stop() }
      send("shown", to: slave)
      close(slave)
      loop.runUntilStopped()
      log.write("\(stream.status == .atEnd)")
      stream.close()
    }
    #expect(log == "open [shown] [] end true")
  }

  /// Creates a named pipe, and removes it after the body.
  private func withNamedPipe(_ body: (String) throws -> Void) throws {
    let path = socketPath()
    try #require(mkfifo(path, 0o600) == 0)
    defer { unlink(path) }
    try body(path)
  }

  @Test("a named pipe ends even if its writer left before the stream was created")
  func writerHasLeft() throws {
    for text in ["hello", ""] {
      try withNamedPipe { path in
        let holder = open(path, O_RDWR | O_CLOEXEC)
        let reading = open(path, O_RDONLY | O_CLOEXEC)
        send(text, to: holder)
        close(holder)
        let log = onSocketLoop { loop, log in
          let stream = try InputByteStream(takingOver: reading)
          try stream.log(log, on: loop) { loop.stop() }
          loop.runUntilStopped()
          stream.close()
        }
        #expect(log == (text.isEmpty ? "open [] end" : "open [hello] [] end"))
      }
    }
  }

  @Test("a pipe that is open for reading and writing does not end with a writer, nor without a reader")
  func controlPipe() throws {
    try withNamedPipe { path in
      let log = onSocketLoop { loop, log in
        let control = open(path, O_RDWR | O_CLOEXEC)
        let stream = try InputByteStream(takingOver: control)
        try stream.log(log, on: loop)
        for text in ["one", "two"] {
          let writer = open(path, O_WRONLY | O_CLOEXEC)
          send(text, to: writer)
          close(writer)
          loop.drain()
        }
        log.write(stream.readText())
        stream.close()
        let output = try OutputByteStream(takingOver: open(path, O_RDWR | O_CLOEXEC))
        output.open()
        log.write("\(try output.write([1, 2]) ?? 0)")
        output.close()
      }
      #expect(log == "open [one] [two] nil 2")
    }
  }

  @Test("a pipe that has had no writer yet is not at its end")
  func writerToCome() throws {
    try withNamedPipe { path in
      let log = onSocketLoop { loop, log in
        let stream = try InputByteStream(takingOver: open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC))
        try stream.log(log, on: loop) { loop.stop() }
        loop.drain()
        log.write(stream.readText())
        let writer = open(path, O_WRONLY | O_CLOEXEC)
        send("late", to: writer)
        close(writer)
        loop.runUntilStopped()
        stream.close()
      }
      #expect(log == "open nil [late] [] end")
    }
  }

  @Test("a pipe in packet mode is written in packets")
  func packets() throws {
    let (reading, writing) = try makePipe()
    // O_DIRECT, which the C library declares only as an extension.
    #if arch(arm64)
      try #require(fcntl(writing, F_SETFL, 0o200000) == 0)
    #else
      try #require(fcntl(writing, F_SETFL, 0o40000) == 0)
    #endif
    let log = onSocketLoop { _, log in
      let output = try OutputByteStream(takingOver: writing)
      output.open()
      for byte in [65, 66] as [UInt8] { log.write("\(try output.write([byte]) ?? 0)") }
      var buffer = [UInt8](repeating: 0, count: 10)
      log.write("\(read(reading, &buffer, buffer.count))")
      output.close()
    }
    close(reading)
    #expect(log == "1 1 1")
  }

  @Test("a descriptor that is open only in the other direction is rejected, and stays open", arguments: [true, false])
  func direction(isPipe: Bool) throws {
    var ends: [Int32] = [-1, -1]
    if isPipe {
      #expect(pipe(&ends) == 0)
    } else {
      ends = [open("/dev/null", O_RDONLY), open("/dev/null", O_WRONLY)]
    }
    defer { for end in ends { #expect(close(end) == 0) } }
    let (reading, writing) = (ends[0], ends[1])
    #expect(
      socketFailure { _ = try InputByteStream(takingOver: writing) } == "\(writing) read (stream):\(EBADF)")
    #expect(
      socketFailure { _ = try OutputByteStream(takingOver: reading) } == "\(reading) write (stream):\(EBADF)")
  }

  @Test("an invalid descriptor is an error, and a released one stays its owner's")
  func none() throws {
    #expect(socketFailure { _ = try InputByteStream(takingOver: -1) } == "-1 stat:\(EBADF)")
    let (one, other) = try socketPair()
    let log = onVirtualSocketLoop { loop, log in
      let stream = try InputByteStream(takingOver: one)
      try stream.log(log, on: loop)
      send("socket", to: other)
      loop.run(mode: .default, for: .seconds(1))
      hangUp(other)
      loop.run(mode: .default, for: .seconds(1))
      stream.close()
    }
    #expect(log == "open [socket] [] end")
  }

  @Test("standard input can be a stream, and stays open and blocking when the stream is closed")
  func standardInput() async {
    await #expect(processExitsWith: .success) {
      let (reading, writing) = try makePipe()
      try #require(dup2(reading, STDIN_FILENO) == STDIN_FILENO)
      send("typed", to: writing)
      close(writing)
      let log = Log()
      let stream = try InputByteStream.standardInput()
      try stream.log(log, on: .current) { RunLoop.current.stop() }
      RunLoop.current.runUntilStopped()
      stream.close()
      #expect(log.text == "open [typed] [] end")
      #expect(fcntl(STDIN_FILENO, F_GETFL) & O_NONBLOCK == 0)
    }
  }

  #if DEBUG
    @Test("a descriptor that cannot be reopened is used as it is, and never waited for")
    func blocking() throws {
      let (reading, writing) = try makePipe()
      let log = onSocketLoop { loop, log in
        let plan = FaultPlan()
        plan.plan(.fileReopen, .fails(EACCES), .fails(EACCES))
        let (input, output) = try plan.rule {
          (try InputByteStream(takingOver: reading), try OutputByteStream(takingOver: writing))
        }
        output.open()
        var count = 0
        while let taken = try output.write([UInt8](repeating: 65, count: 100_000)) { count += taken }
        log.write("\(count >= 4096) \(count % 4096)")
        try input.log(Log(), on: loop) {
          log.write("end")
          loop.stop()
        }
        output.close()
        loop.runUntilStopped()
        log.write(input.readText())
        input.close()
      }
      #expect(log == "true 0 end ")
    }

    @Test(
      "a fault while a descriptor is taken over is thrown, and it stays its owner's",
      arguments: [(SystemCall.fileStatus, ENOMEM), (.fileWatchable, EMFILE), (.fileReopen, EMFILE)])
    func faults(call: SystemCall, number: Int32) throws {
      let (reading, writing) = try makePipe()
      let plan = FaultPlan()
      plan.plan(call, .fails(number))
      plan.rule {
        let failure = socketFailure { _ = try InputByteStream(takingOver: reading) }
        #expect(failure == "\(reading) \(call.rawValue):\(number)")
      }
      #expect(plan.isUsedUp)
      for descriptor in [reading, writing] { #expect(close(descriptor) == 0) }
    }

    @Test("a failed read is reported once, and an interrupted one is repeated")
    func readFaults() throws {
      let (reading, writing) = try makePipe()
      defer { close(writing) }
      send("x", to: writing)
      let log = onVirtualSocketLoop { loop, log in
        let stream = try InputByteStream(takingOver: reading)
        try stream.log(log, on: loop)
        let plan = FaultPlan()
        plan.plan(.fileRead, .fails(EINTR), .fails(EAGAIN), .fails(EIO))
        _ = plan.rule { loop.run(mode: .default, for: .seconds(1)) }
        log.write("\(plan.isUsedUp)")
        stream.close()
      }
      let error = SocketError.system(SystemError(call: "read (stream)", number: EIO), address: nil)
      #expect(log == "open [nil] [\(error)] \(error) true")
    }
  #endif
}
