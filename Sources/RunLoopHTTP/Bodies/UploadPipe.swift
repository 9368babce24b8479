// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// Buffers the body that a task produces until the connection sends it.
final class UploadPipe: @unchecked Sendable {
  // Sendable: all mutable state is guarded by the lock.

  /// The number of buffered bytes at which the producer is suspended.
  private static let highWater = 64 * 1024

  let length: Int64?
  private let onBytes: @Sendable () -> Void
  private let lock = Lock()
  /// The produced bytes, of which the first `taken` have been consumed.
  private(set) var buffer: [UInt8] = []
  private var taken = 0
  private var produced: Int64 = 0
  private var end: BodyRead?
  private var isAwaited = false
  private var producer: CheckedContinuation<Void, Never>?
  private var task: Task<Void, Never>?
  private var isClosed = false

  struct Closed: Swift.Error {}

  init(length: Int64?, onBytes: @escaping @Sendable () -> Void) {
    self.length = length
    self.onBytes = onBytes
  }

  func start(_ feed: @escaping @Sendable (UploadPipe) async throws -> Void) {
    let task = Task {
      do {
        try await feed(self)
        self.finish(nil)
      } catch {
        self.finish("the body's sequence has thrown: \(error)")
      }
    }
    lock.lock()
    let isLate = isClosed
    if !isLate { self.task = task }
    lock.unlock()
    if isLate { task.cancel() }
  }

  /// Buffers a chunk, and waits until there is room for the next one.
  func send(_ chunk: [UInt8]) async throws {
    guard !chunk.isEmpty else { return }
    try append(chunk)
    await withCheckedContinuation { continuation in
      lock.lock()
      if isClosed || end != nil || buffer.count - taken < Self.highWater {
        lock.unlock()
        continuation.resume()
      } else {
        producer = continuation
        lock.unlock()
      }
    }
    lock.noteResumption()
    if lock.withLock({ isClosed }) { throw Closed() }
  }

  private func append(_ chunk: [UInt8]) throws {
    lock.lock()
    guard !isClosed, end == nil else {
      lock.unlock()
      throw Closed()
    }
    produced += Int64(chunk.count)
    if let length, produced > length {
      end = .failed("the body's sequence has more than the \(length) bytes that were announced")
    } else {
      // If the producer is always ahead, the buffer is never empty, so consumed bytes are removed here.
      buffer.removeFirst(taken)
      taken = 0
      buffer.append(contentsOf: chunk)
    }
    let isAwaited = takeWait()
    lock.unlock()
    if isAwaited { onBytes() }
  }

  private func finish(_ failure: String?) {
    lock.lock()
    if end == nil {
      if let failure {
        end = .failed(failure)
      } else if let length, produced < length {
        end = .failed("the body's sequence has \(produced) bytes, and \(length) were announced")
      } else {
        end = .end
      }
    }
    let isAwaited = takeWait()
    lock.unlock()
    if isAwaited { onBytes() }
  }

  private func takeWait() -> Bool {
    defer { isAwaited = false }
    return isAwaited
  }

  /// Reads the buffered bytes, on the loader's thread.
  func read(into target: UnsafeMutableRawBufferPointer) -> BodyRead {
    lock.lock()
    if case .failed? = end {
      defer { lock.unlock() }
      return end ?? .end
    }
    let count = min(target.count, buffer.count - taken)
    guard count > 0 else {
      defer { lock.unlock() }
      if let end { return end }
      isAwaited = true
      return .wait
    }
    buffer.withUnsafeBytes { target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[taken..<taken + count])) }
    taken += count
    if taken == buffer.count {
      buffer.removeAll(keepingCapacity: true)
      taken = 0
    }
    var resumed: CheckedContinuation<Void, Never>?
    if buffer.count - taken < Self.highWater { swap(&resumed, &producer) }
    lock.unlock()
    resumed?.resume()
    return .bytes(count)
  }

  /// Cancels the producer, because the body is no longer read.
  func close() {
    lock.lock()
    isClosed = true
    let (task, waiting) = (task, producer)
    self.task = nil
    producer = nil
    buffer = []
    taken = 0
    lock.unlock()
    waiting?.resume()
    task?.cancel()
  }
}
