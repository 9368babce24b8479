// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

extension HTTP {
  /// The body of a response as a sequence of chunks.
  ///
  /// Up to 256 KiB are buffered, plus any bytes already read from the connection. After that, nothing is read until
  /// the program has consumed most of the buffer. The sequence can be iterated only once, by a single task. When the
  /// last reference to it is released, the request is cancelled unless it has ended.
  public struct BodySequence: AsyncSequence, Sendable {
    /// A chunk, which is never empty.
    public typealias Element = [UInt8]

    let owner: BodyOwner

    /// The iterator over the chunks.
    public struct AsyncIterator: AsyncIteratorProtocol {
      let owner: BodyOwner

      /// Returns the next chunk, or nil at the end of the body.
      ///
      /// - Throws: Always ``HTTP/Error``.
      public mutating func next() async throws -> [UInt8]? { try await owner.next() }
    }

    /// The response at the end of the body, including ``HTTP/Response/trailers``; nil until then.
    public var finalResponse: HTTP.Response? { owner.finalResponse }

    /// Creates an iterator; if there are several, each chunk is delivered to only one of them.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(owner: owner) }
  }
}

/// Cancels the request when its body is no longer referenced.
final class BodyOwner: Sendable {
  private let buffer: BodyBuffer
  private let transfer: Transfer

  init(_ buffer: BodyBuffer, _ transfer: Transfer) {
    self.buffer = buffer
    self.transfer = transfer
  }

  deinit { if !buffer.hasEnded { transfer.cancel() } }

  /// Cancels the request and returns the error to throw.
  func tooLarge(_ detail: String) -> HTTP.Error {
    transfer.cancel()
    return HTTP.Error(
      .tooLarge, url: WebAddress.safeText(of: transfer.request.url), bytesReceived: buffer.received, detail)
  }

  var finalResponse: HTTP.Response? { buffer.finalResponse }

  func next() async throws -> [UInt8]? {
    let transfer = transfer
    return try await withTaskCancellationHandler {
      try await buffer.next { transfer.receiverHasRoom() }
    } onCancel: {
      transfer.cancel()
    }
  }
}

/// The buffer between the loader and the consumer of a body.
final class BodyBuffer: Receiver, @unchecked Sendable {
  // Sendable: all mutable state is guarded by the lock.

  /// The sizes in bytes at which the connection stops being read and continues to be read.
  static let (highWater, lowWater) = (256 * 1024, 64 * 1024)
  /// Data is appended to the last chunk up to this size in bytes, because a server may send single bytes and each
  /// array has a cost.
  static let chunkSize = 16 * 1024

  private let lock = Lock()
  private var chunks: [[UInt8]] = []
  private var first = 0
  private var backlog = Backlog(highWater: highWater, lowWater: lowWater)
  private var total: Int64 = 0
  private var end: Result<HTTP.Response, HTTP.Error>?
  private var consumer: CheckedContinuation<[UInt8]?, any Swift.Error>?
  /// Called once, with the headers or with an error.
  private var onHead: (@Sendable (Result<HTTP.Response, HTTP.Error>) -> Void)?

  init(onHead: @escaping @Sendable (Result<HTTP.Response, HTTP.Error>) -> Void) { self.onHead = onHead }

  var finalResponse: HTTP.Response? { lock.withLock { try? end?.get() } }
  var hasEnded: Bool { lock.withLock { end != nil } }
  var received: Int64 { lock.withLock { total } }
  /// The number of slots in the chunk array, including those of consumed chunks.
  var slotCount: Int { lock.withLock { chunks.count } }

  // Used only on the loader's thread.

  // Consumed chunks cannot be taken back, so the body can only restart before it has begun.
  var canRestart: Bool { lock.withLock { onHead != nil } }
  var closesAtOnce: Bool { true }
  var defaultLimit: Int64? { nil }

  func begin(_ response: HTTP.Response, at offset: Int64) throws(HTTP.Error) { takeOnHead()?(.success(response)) }

  private func takeOnHead() -> (@Sendable (Result<HTTP.Response, HTTP.Error>) -> Void)? {
    lock.withLock {
      defer { onHead = nil }
      return onHead
    }
  }

  func take(_ bytes: UnsafeRawBufferPointer) throws(HTTP.Error) -> Bool {
    guard !bytes.isEmpty else { return true }
    lock.lock()
    let waiting = consumer
    consumer = nil
    total += Int64(bytes.count)
    if waiting == nil {
      append(bytes)
      backlog.add(bytes.count)
    }
    let isFull = backlog.isFull
    lock.unlock()
    waiting?.resume(returning: Array(bytes))
    return !isFull
  }

  /// Appends bytes to the last chunk or as a new chunk; requires the lock.
  private func append(_ bytes: UnsafeRawBufferPointer) {
    if first < chunks.count, chunks[chunks.count - 1].count + bytes.count <= Self.chunkSize {
      return chunks[chunks.count - 1].append(contentsOf: bytes)
    }
    // If the consumer never catches up, the buffer is never empty, so consumed slots are removed here.
    if first > 32, first > chunks.count / 2 {
      chunks.removeFirst(first)
      first = 0
    }
    chunks.append(Array(bytes))
  }

  func finish(_ result: Result<HTTP.Response, HTTP.Error>) {
    takeOnHead()?(result)
    lock.lock()
    end = result
    // Nothing is delivered after a cancellation.
    if case .failure(let error) = result, error.code == .cancelled {
      chunks = []
      first = 0
      backlog.removeAll()
    }
    let waiting = consumer
    consumer = nil
    lock.unlock()
    waiting?.resume(with: result.map { _ in nil }.mapError { $0 })
  }

  // Called by the consumer's task.

  func next(_ hasRoom: () -> Void) async throws -> [UInt8]? {
    if let found = lock.withLock({ takeFirst() }) {
      if found.goesOn { hasRoom() }
      return try found.result.get()
    }
    defer { lock.noteResumption() }
    return try await withCheckedThrowingContinuation { continuation in
      lock.lock()
      let found = takeFirst()
      let isSecond = found == nil && consumer != nil
      if found == nil, !isSecond { consumer = continuation }
      lock.unlock()
      if isSecond {
        continuation.resume(throwing: HTTP.Error(.invalidRequest, "two tasks wait for the chunks of one body"))
      } else if let found {
        // A chunk has arrived in the meantime.
        if found.goesOn { hasRoom() }
        continuation.resume(with: found.result.mapError { $0 })
      }
    }
  }

  /// Returns the first chunk or the end, if available, and whether reading should resume; requires the lock.
  private func takeFirst() -> (result: Result<[UInt8]?, HTTP.Error>, goesOn: Bool)? {
    guard first < chunks.count else { return end.map { ($0.map { _ in nil }, false) } }
    let chunk = chunks[first]
    chunks[first] = []
    first += 1
    if first == chunks.count {
      chunks.removeAll(keepingCapacity: true)
      first = 0
    }
    return (.success(chunk), backlog.remove(chunk.count))
  }
}
