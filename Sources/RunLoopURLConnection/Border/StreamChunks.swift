// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation

/// What an input stream brings, chunk by chunk.
///
/// A stream's `read` may wait, which a task must not: a queue of dispatch reads.
struct StreamChunks: AsyncSequence, Sendable {
  typealias Element = [UInt8]

  private let source: Source

  /// Reads a stream; one that can be read again is, each time.
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
    // Sendable: the stream, and whether it has ended, are for the queue alone.
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
  /// Why it has failed; Foundation on Linux traps if it is asked for the error of a stream that has none.
  var failure: (any Error)? { streamStatus == .error ? streamError : nil }
}

/// A stream on its way to where it is read.
struct SendableStream: @unchecked Sendable {
  // Sendable: nobody but the reader uses a stream that is the body of a request.
  private let stream: InputStream

  init(_ stream: InputStream) { self.stream = stream }

  func fresh() -> InputStream { (stream as? AFMultipartBodyStream)?.fresh() ?? stream }
}
