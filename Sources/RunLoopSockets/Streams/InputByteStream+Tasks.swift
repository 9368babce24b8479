// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents

extension InputByteStream: AsyncSequence {
  /// The bytes of one read.
  public typealias Element = [UInt8]

  /// Opens the stream if it is not open yet, and replaces its handler.
  ///
  /// A thread of this library serves the stream, which need not be in a loop. One task can iterate at a time: if
  /// another begins, or the stream gets a handler, a task that is waiting gets ``SocketError/busy``. The stream stays
  /// open when the iteration ends; bytes that an iteration over lines has read beyond its last line are lost. Closing
  /// the stream ends the iteration with an error.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(reader: StreamReader(self)) }

  /// An iterator that waits for the bytes of a stream.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let reader: StreamReader

    /// Returns the next bytes, at least one, or `nil` at the end or if the task is cancelled.
    ///
    /// - Throws: The error of the stream, ``SocketError/invalid`` if it is closed, or ``SocketError/busy`` if another
    ///   iterator, or a handler, has taken it over meanwhile.
    public mutating func next() async throws -> [UInt8]? { try await reader.next() }
  }

  /// Returns the lines of the stream as an asynchronous sequence.
  ///
  /// - Parameter limit: The maximum length of a line in bytes, without its end. The default is 1 MiB.
  public func lines(upTo limit: Int = 1 << 20) -> ByteLines<InputByteStream> { ByteLines(chunks: self, limit: limit) }
}

/// Reads a stream for a task, on the service thread.
private final class StreamReader: @unchecked Sendable {
  // Sendable: the lock guards the variables.

  private static let chunk = 65_536

  private let stream: InputByteStream
  private let loop = ServiceThread.loop
  private let lock = Lock()
  private var hasNews = false
  /// Whether the stream has been closed, or has another handler, such as that of another iterator.
  private var hasLost = false
  private var waiting: CheckedContinuation<Void, Never>?
  /// The error of adding the stream to the loop.
  private var failure: RunLoopError?

  init(_ stream: InputByteStream) {
    self.stream = stream
    begin()
  }

  deinit {
    guard !isReplaced else { return }
    stream.handler = nil
    stream.remove(from: loop, forMode: .default)
  }

  private var isReplaced: Bool { lock.withLock { hasLost } }

  private func begin() {
    lock.withLock { hasLost = false }
    stream.setHandler({ [weak self] _, _ in self?.wake() }, onEnd: { [weak self] in self?.lose() })
    do throws(RunLoopError) {
      try stream.schedule(in: loop, forMode: .default)
    } catch {
      // If the stream is closed, reading from it reports that.
      if error != .invalidSource { failure = error }
    }
    stream.open()
  }

  private func lose() {
    lock.withLock { hasLost = true }
    stream.remove(from: loop, forMode: .default)
    wake()
  }

  func next() async throws -> [UInt8]? {
    // Another iterator has been used since.
    if isReplaced { begin() }
    while !Task.isCancelled {
      if let failure { throw failure }
      switch stream.status {
      case .notOpen, .opening: break
      case .open, .atEnd, .failed, .closed: if let bytes = try read() { return bytes.isEmpty ? nil : bytes }
      }
      await awaitNews()
      // Another task has taken the stream over.
      if isReplaced, stream.status != .closed { throw SocketError.busy }
    }
    return nil
  }

  /// Reads the available bytes, none at the end of the stream, or returns `nil` if no bytes have arrived.
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
