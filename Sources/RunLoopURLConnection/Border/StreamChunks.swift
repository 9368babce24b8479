// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation

/// The contents of an input stream as a sequence of chunks.
///
/// A stream's `read` may block, which a task must not, so it is called on a dispatch queue.
struct StreamChunks: AsyncSequence, Sendable {
  typealias Element = [UInt8]

  private let source: Source

  /// Reads a stream, which starts over each time if it can be read again.
  init(_ stream: SendableStream) { source = Source(stream.fresh()) }

  func makeAsyncIterator() -> Iterator { Iterator(source: source) }

  struct Iterator: AsyncIteratorProtocol {
    fileprivate let source: Source

    mutating func next() async throws -> [UInt8]? {
      let source = source
      return try await withCheckedThrowingContinuation { continuation in
        source.queue.async { continuation.resume(with: Result { try source.read() }) }
      }
    }
  }

  fileprivate final class Source: @unchecked Sendable {
    // Sendable: the stream and `hasEnded` are used only on the queue, and by the thread that releases the last
    // reference.
    let queue = DispatchQueue(label: "RunLoopHTTP.BodyStream")
    private let stream: InputStream
    private var hasEnded = false

    init(_ stream: InputStream) { self.stream = stream }

    deinit { if !hasEnded { stream.close() } }

    func read() throws -> [UInt8]? {
      guard !hasEnded else { return nil }
      if stream.streamStatus == .notOpen { stream.open() }
      var bytes = [UInt8](repeating: 0, count: 32 * 1024)
      let count = stream.read(&bytes, maxLength: bytes.count)
      if count > 0 { return Array(bytes[..<count]) }
      hasEnded = true
      defer { stream.close() }
      if count < 0 { throw stream.failure ?? CocoaError(.fileReadUnknown) }
      return nil
    }
  }
}

extension Stream {
  /// The error of a failed stream; Foundation on Linux traps if `streamError` is read without an error.
  var failure: (any Error)? { streamStatus == .error ? streamError : nil }
}

/// A stream that is passed to its reader.
struct SendableStream: @unchecked Sendable {
  // Sendable: a stream that is the body of a request is used only by its reader.
  private let stream: InputStream

  init(_ stream: InputStream) { self.stream = stream }

  func fresh() -> InputStream { (stream as? AFMultipartBodyStream)?.fresh() ?? stream }
}
