// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopKit
import TestSupport
import Testing

@Suite("Streams on our loops", .timeLimit(.minutes(20)))
struct StreamTests {
  @Test("a delegate is notified of the opening, of bytes until it has read them, and of the end, which ends the run")
  func input() async throws {
    let log = try await valueOnThread {
      let stream = InputStream(data: Data("hello".utf8))
      let delegate = Delegate { delegate in delegate.read(3) }
      stream.delegate = delegate
      stream.schedule(in: RunLoop.current, forMode: .default)
      stream.open()
      RunLoop.current.run()
      return delegate.log
    }
    #expect(log == "opened bytes hel bytes lo end")
  }

  @Test("a stream that is scheduled in a loop is rejected by the loop of another thread")
  func secondLoop() async throws {
    let log = try await valueOnThread {
      // As code in the Swift 5 mode may do it.
      nonisolated(unsafe) let stream = InputStream(data: Data("hello".utf8))
      let delegate = Delegate { delegate in delegate.read(5) }
      stream.delegate = delegate
      stream.schedule(in: RunLoop.current, forMode: .default)
      let other = startThread { () -> Bool in
        stream.schedule(in: RunLoop.current, forMode: .default)
        return RunLoop.current.run(mode: .default, before: .distantFuture)
      }
      #expect(!other.result(), "the second loop has something to run")
      stream.open()
      RunLoop.current.run()
      return delegate.log
    }
    #expect(log == "opened bytes hello end")
  }

  @Test("a file is read to its end")
  func file() async throws {
    let content = try Data(contentsOf: URL(fileURLWithPath: #filePath))
    let read = try await valueOnThread {
      let stream = try #require(InputStream(fileAtPath: #filePath))
      let delegate = Delegate { delegate in delegate.read(1000) }
      stream.delegate = delegate
      stream.open()
      stream.schedule(in: RunLoop.current, forMode: .common)
      while RunLoop.current.run(mode: .default, before: .distantFuture) {}
      return delegate.data
    }
    #expect(read == content)
  }

  @Test("a delegate that reads nothing is notified in every pass until it closes the stream")
  func unread() async throws {
    let log = try await valueOnThread {
      let stream = InputStream(data: Data("hello".utf8))
      let delegate = Delegate { delegate in if delegate.events == 4 { delegate.stream?.close() } }
      stream.delegate = delegate
      stream.schedule(in: RunLoop.current, forMode: .default)
      stream.open()
      RunLoop.current.run()
      return delegate.log
    }
    #expect(log == "opened bytes bytes bytes")
  }

  @Test("a delegate is notified of space again only after it has written")
  func output() async throws {
    let (log, written) = try await valueOnThread {
      let stream = OutputStream.toMemory()
      let delegate = Delegate { delegate in if delegate.events < 4 { delegate.write("abc") } }
      stream.delegate = delegate
      stream.schedule(in: RunLoop.current, forMode: .default)
      stream.open()
      // A run per event, and some for events that do not arrive.
      for _ in 1...4 { #expect(RunLoop.current.run(mode: .default, before: .distantFuture)) }
      for _ in 1...4 { #expect(RunLoop.current.run(mode: .default, before: .distantPast)) }
      let written = stream.property(forKey: .dataWrittenToMemoryStreamKey) as? NSData
      stream.close()
      RunLoop.current.run()
      return (delegate.log, written.map { Data(referencing: $0) })
    }
    #expect(log == "opened space abc space abc space")
    #expect(written == Data("abcabc".utf8))
  }

  @Test("writing and opening outside the delegate are noticed before the loop waits")
  func outside() async throws {
    let log = try await valueOnThread {
      let path = NSTemporaryDirectory() + "RunLoopKit-\(UUID().uuidString)"
      defer { unlink(path) }
      let stream = try #require(OutputStream(toFileAtPath: path, append: false))
      let delegate = Delegate { _ in }
      stream.delegate = delegate
      let loop = RunLoop.current
      stream.schedule(in: loop, forMode: .default)
      delegate.stream = stream
      // A block runs after the observers that check before the sources.
      loop.perform { delegate.stream?.open() }
      for _ in 1...2 { #expect(loop.run(mode: .default, before: .distantFuture)) }
      loop.perform { delegate.write("abc") }
      #expect(loop.run(mode: .default, before: .distantFuture))
      loop.perform { delegate.write("def") }
      #expect(loop.run(mode: .default, before: .distantFuture))
      loop.perform { delegate.stream?.close() }
      loop.run()
      return delegate.log
    }
    #expect(log == "opened space abc space def space")
  }

  @Test("a stream's error is reported, and ends the run")
  func error() async throws {
    let log = try await valueOnThread {
      let stream = try #require(InputStream(fileAtPath: "/nowhere/at/all"))
      let delegate = Delegate { _ in }
      stream.delegate = delegate
      stream.schedule(in: RunLoop.current, forMode: .default)
      stream.open()
      RunLoop.current.run()
      return delegate.log
    }
    #expect(log == "error")
  }

  @Test("a stream's events are reported in its modes until it is removed, and its opening only once")
  func modes() async throws {
    let log = try await valueOnThread {
      let stream = InputStream(data: Data("hello".utf8))
      let delegate = Delegate { delegate in delegate.read(1) }
      stream.delegate = delegate
      stream.open()
      let loop = RunLoop.current
      let (first, second) = (RunLoop.Mode("first"), RunLoop.Mode("second"))
      stream.schedule(in: loop, forMode: first)
      #expect(!loop.run(mode: .default, before: .distantFuture))
      #expect(loop.run(mode: first, before: .distantFuture))
      #expect(loop.run(mode: first, before: .distantFuture))
      stream.remove(from: loop, forMode: first)
      #expect(!loop.run(mode: first, before: .distantFuture))
      stream.schedule(in: loop, forMode: second)
      #expect(loop.run(mode: second, before: .distantFuture))
      stream.remove(from: loop, forMode: second)
      return delegate.log
    }
    #expect(log == "opened bytes h bytes e")
  }

  @Test("the events of a stream that another thread schedules are reported on the loop's thread")
  func otherThread() async throws {
    let thread = try ResidentThread()
    let log = await withCheckedContinuation { continuation in
      let stream = InputStream(data: Data("hello".utf8))
      let delegate = Delegate { delegate in
        delegate.read(8)
        if delegate.log.hasSuffix("end") {
          continuation.resume(returning: Thread.current == thread.thread ? delegate.log : "elsewhere")
        }
      }
      delegate.keepItself = delegate
      stream.delegate = delegate
      stream.open()
      stream.schedule(in: thread.runLoop, forMode: .common)
    }
    #expect(log == "opened bytes hello end")
    thread.stop()
    try thread.join()
  }

  @Test("the loop retains a stream until it is closed")
  func lifetime() async throws {
    try await valueOnThread {
      weak var held: InputStream?
      let delegate = Delegate { delegate in if delegate.events == 2 { delegate.stream?.close() } }
      do {
        let stream = InputStream(data: Data("hello".utf8))
        held = stream
        stream.delegate = delegate
        stream.open()
        stream.schedule(in: RunLoop.current, forMode: .default)
      }
      #expect(held != nil)
      RunLoop.current.run()
      delegate.stream = nil
      #expect(delegate.log == "opened bytes")
      // Another test may be querying this loop.
      waitUntil { held == nil }
    }
  }
}

private final class Delegate: StreamDelegate, @unchecked Sendable {
  // Sendable: used only on the thread of the stream's loop.
  private(set) var log = ""
  private(set) var events = 0
  private(set) var data = Data()
  var stream: Stream?
  var keepItself: Delegate?
  private let act: @Sendable (Delegate) -> Void

  init(_ act: @escaping @Sendable (Delegate) -> Void) { self.act = act }

  func stream(_ stream: Stream, handle event: Stream.Event) {
    self.stream = stream
    events += 1
    switch event {
    case .openCompleted: note("opened")
    case .hasBytesAvailable: note("bytes")
    case .hasSpaceAvailable: note("space")
    case .endEncountered: note("end")
    case .errorOccurred: note("error")
    default: note("\(event.rawValue)")
    }
    act(self)
    if event == .endEncountered { keepItself = nil }
  }

  func read(_ count: Int) {
    guard let stream = stream as? InputStream, log.hasSuffix("bytes") else { return }
    var bytes = [UInt8](repeating: 0, count: count)
    let length = stream.read(&bytes, maxLength: count)
    guard length > 0 else { return }
    data.append(contentsOf: bytes.prefix(length))
    note(String(decoding: bytes.prefix(length), as: UTF8.self))
  }

  func write(_ text: String) {
    guard let stream = stream as? OutputStream, log.hasSuffix("space") else { return }
    note(stream.write(Array(text.utf8), maxLength: text.utf8.count) == text.utf8.count ? text : "failed")
  }

  private func note(_ word: String) { log += (log.isEmpty ? "" : " ") + word }
}
