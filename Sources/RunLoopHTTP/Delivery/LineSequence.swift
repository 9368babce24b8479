// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// The lines of a body, as they arrive.
  ///
  /// A line ends with a line feed, a carriage return, or both, which are not part of it. The text after the last end is
  /// also a line, unless it is empty. Bytes that are not UTF-8 become U+FFFD.
  public struct LineSequence: AsyncSequence, Sendable {
    /// A line, which may be empty.
    public typealias Element = String

    let body: BodySequence
    let limit: Int

    /// Takes the lines.
    public struct AsyncIterator: AsyncIteratorProtocol {
      private let body: BodySequence
      private let limit: Int
      private var chunks: BodySequence.AsyncIterator
      private var reader: LineReader
      private var hasEnded = false

      init(_ body: BodySequence, _ limit: Int) {
        self.body = body
        self.limit = limit
        chunks = body.makeAsyncIterator()
        reader = LineReader(limit: limit)
      }

      /// The next line; nil at the end of the body.
      ///
      /// - Throws: Always ``HTTP/Error``; ``HTTP/Error/Code/tooLarge`` if a line exceeds the limit, and then the
      ///   request is cancelled.
      public mutating func next() async throws -> String? {
        while !hasEnded {
          do throws(LineReader.TooLong) {
            if let line = try reader.next() { return line }
          } catch {
            hasEnded = true
            throw body.owner.tooLarge("a line has more than \(limit) bytes")
          }
          guard let chunk = try await chunks.next() else {
            hasEnded = true
            return reader.last()
          }
          reader.feed(chunk)
        }
        return nil
      }
    }

    /// Makes an iterator; the chunks of the body go to the iterator that asks first.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(body, limit) }
  }
}

extension HTTP.BodySequence {
  /// The lines of the body, each of at most 1 MiB.
  public var lines: HTTP.LineSequence { lines(upTo: 1 << 20) }

  /// The lines of the body.
  ///
  /// - Parameter limit: How many bytes a line may have.
  public func lines(upTo limit: Int) -> HTTP.LineSequence { HTTP.LineSequence(body: self, limit: Swift.max(0, limit)) }
}
