// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

extension HTTP {
  /// The body of an answer, chunk by chunk as it arrives.
  ///
  /// At most 256 KiB, and the bytes on their way, wait to be taken; then nothing more is read from the connection until
  /// the program has taken most of it. The sequence is for one loop of one task. When nobody holds it any more, the
  /// request is cancelled unless it has ended.
  public struct BodySequence: AsyncSequence, Sendable {
    /// A chunk, which is never empty.
    public typealias Element = [UInt8]

    let owner: BodyOwner

    /// Takes the chunks.
    public struct AsyncIterator: AsyncIteratorProtocol {
      let owner: BodyOwner

      /// The next chunk; nil at the end of the body.
      ///
      /// - Throws: Always ``HTTP/Error``.
      public mutating func next() async throws -> [UInt8]? { try await owner.next() }
    }

    /// The response as it is when the body has ended, with ``HTTP/Response/trailers``; nil before.
    public var finalResponse: HTTP.Response? { owner.finalResponse }

    /// Makes an iterator; the chunks go to the iterator that asks first.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(owner: owner) }
  }
}

/// Cancels the request when nobody wants its body any more.
final class BodyOwner: Sendable {
  private let buffer: BodyBuffer
  private let transfer: Transfer

  init(_ buffer: BodyBuffer, _ transfer: Transfer) {
    self.buffer = buffer
    self.transfer = transfer
  }

  deinit { if !buffer.hasEnded { transfer.cancel() } }

  /// Ends the request, and returns why.
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

/// What has come of a body and was not taken yet.
final class BodyBuffer: Receiver, @unchecked Sendable {
  // Sendable: all that changes is guarded by the lock.

  /// From how many bytes on the connection waits, and at how many it goes on.
  static let (highWater, lowWater) = (256 * 1024, 64 * 1024)
  /// Up to how many bytes what comes is added to the chunk before: a server may send byte by byte, and an array is
  /// more.
  static let chunkSize = 16 * 1024

  private let lock = Lock()
  private var chunks: [[UInt8]] = []
  private var first = 0
  private var backlog = Backlog(highWater: highWater, lowWater: lowWater)
  /// How many bytes have arrived in all.
  private var total: Int64 = 0
  private var end: Result<HTTP.Response, HTTP.Error>?
  private var consumer: CheckedContinuation<[UInt8]?, any Swift.Error>?
  /// Resumed once, by the head or by the end.
  private var onHead: (@Sendable (Result<HTTP.Response, HTTP.Error>) -> Void)?

  init(onHead: @escaping @Sendable (Result<HTTP.Response, HTTP.Error>) -> Void) { self.onHead = onHead }

  var finalResponse: HTTP.Response? { lock.withLock { try? end?.get() } }
  var hasEnded: Bool { lock.withLock { end != nil } }
  var received: Int64 { lock.withLock { total } }
  /// How many places for chunks there are, those of taken ones included.
  var slotCount: Int { lock.withLock { chunks.count } }

  // The loader's thread.

  // What was taken cannot be taken back; before the first chunk there is nothing to take back.
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

  /// Under the lock.
  private func append(_ bytes: UnsafeRawBufferPointer) {
    if first < chunks.count, chunks[chunks.count - 1].count + bytes.count <= Self.chunkSize {
      return chunks[chunks.count - 1].append(contentsOf: bytes)
    }
    // A consumer that is always behind leaves no moment at which nothing waits.
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
    // After a cancellation nothing is delivered.
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

  // The consumer's task.

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
        // It has arrived meanwhile.
        if found.goesOn { hasRoom() }
        continuation.resume(with: found.result.mapError { $0 })
      }
    }
  }

  /// The first chunk or the end, and whether the connection is to go on; nil if there is neither.
  ///
  /// Under the lock.
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
