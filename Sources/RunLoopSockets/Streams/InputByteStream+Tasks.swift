// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents

extension InputByteStream: AsyncSequence {
  /// The bytes that one read has taken.
  public typealias Element = [UInt8]

  /// Opens the stream if it is not open yet, and takes the place of its handler.
  ///
  /// A thread of the library's own serves the stream, which need not be in a loop. One task iterates at a time. The
  /// stream stays open when the iteration ends.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(reader: StreamReader(self)) }

  /// Waits for the bytes of a stream.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let reader: StreamReader

    /// Returns the next bytes, at least one; nil at the end, or when the task is cancelled.
    ///
    /// - Throws: The error that has happened to the stream; ``SocketError/invalid`` if it is closed.
    public mutating func next() async throws -> [UInt8]? { try await reader.next() }
  }

  /// The lines of a stream as an asynchronous sequence.
  ///
  /// - Parameter limit: The most bytes of a line.
  public func lines(upTo limit: Int = 1 << 20) -> Lines { Lines(stream: self, limit: limit) }

  /// A line is longer than the iteration allows.
  public struct LineTooLong: Error, Hashable, Sendable {
    /// The most bytes of a line.
    public let limit: Int
  }

  /// The lines of a stream, without the line feeds and carriage returns that end them.
  ///
  /// What follows the last line feed is a line too, unless it is empty. Bytes that are not UTF-8 become replacement
  /// characters.
  public struct Lines: AsyncSequence, Sendable {
    fileprivate let stream: InputByteStream
    fileprivate let limit: Int

    /// Begins to read the stream, as ``InputByteStream/makeAsyncIterator()`` does.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(reader: StreamReader(stream), limit: limit) }

    /// Waits for the lines of a stream.
    public struct AsyncIterator: AsyncIteratorProtocol {
      fileprivate let reader: StreamReader
      fileprivate let limit: Int
      private var bytes: [UInt8] = []
      /// Where the next line begins, and how far no line feed was found.
      private var (start, seen) = (0, 0)

      fileprivate init(reader: StreamReader, limit: Int) {
        self.reader = reader
        self.limit = limit
      }

      /// Returns the next line; nil at the end, or when the task is cancelled.
      ///
      /// - Throws: ``LineTooLong``, and what ``InputByteStream/AsyncIterator/next()`` throws.
      public mutating func next() async throws -> String? {
        while true {
          let end = bytes[seen...].firstIndex(of: UInt8(ascii: "\n"))
          guard (end ?? bytes.count) - start <= limit else { throw LineTooLong(limit: limit) }
          if let end {
            defer { (start, seen) = (end + 1, end + 1) }
            return text(end)
          }
          if start > 0 {
            bytes.removeFirst(start)
            start = 0
          }
          seen = bytes.count
          guard let more = try await reader.next() else {
            guard !bytes.isEmpty else { return nil }
            defer { (bytes, seen) = ([], 0) }
            return text(bytes.count)
          }
          bytes += more
        }
      }

      private func text(_ end: Int) -> String {
        var line = bytes[start..<end]
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        return String(decoding: line, as: UTF8.self)
      }
    }
  }
}

/// Reads a stream for a task, on the service thread.
private final class StreamReader: @unchecked Sendable {
  // Sendable: the lock guards the variables.

  private static let chunk = 65_536

  private let stream: InputByteStream
  private let loop = ServiceThread.loop
  private let lock = Lock()
  private var hasNews = false
  private var waiting: CheckedContinuation<Void, Never>?
  /// Why the stream could not be added to the loop.
  private var failure: RunLoopError?

  init(_ stream: InputByteStream) {
    self.stream = stream
    stream.handler = { [weak self] _, _ in self?.wake() }
    do throws(RunLoopError) {
      try stream.schedule(in: loop, forMode: .default)
    } catch {
      // A closed stream says so itself.
      if error != .invalidSource { failure = error }
    }
    stream.open()
  }

  deinit {
    stream.handler = nil
    stream.remove(from: loop, forMode: .default)
  }

  func next() async throws -> [UInt8]? {
    while !Task.isCancelled {
      if let failure { throw failure }
      switch stream.status {
      case .notOpen, .opening: break
      case .open, .atEnd, .failed, .closed: if let bytes = try read() { return bytes.isEmpty ? nil : bytes }
      }
      await awaitNews()
    }
    return nil
  }

  /// What there is to read: nothing at the end, nil if there is nothing yet.
  private func read() throws -> [UInt8]? {
    try withUnsafeTemporaryAllocation(byteCount: Self.chunk, alignment: 1) { buffer in
      try stream.read(into: buffer).map { Array(buffer[..<$0]) }
    }
  }

  private func awaitNews() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = lock.withLock {
          defer { hasNews = false }
          if hasNews || Task.isCancelled { return true }
          waiting = continuation
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      wake()
    }
  }

  private func wake() {
    let waiting = lock.withLock {
      let waiting = self.waiting
      self.waiting = nil
      if waiting == nil { hasNews = true }
      return waiting
    }
    waiting?.resume()
  }
}
