// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// The lines of a body as they arrive.
  ///
  /// A line ends with a line feed, a carriage return, or both, which are not part of the line. Text after the last
  /// line ending also counts as a line unless it is empty. Invalid UTF-8 is replaced with U+FFFD.
  public struct LineSequence: AsyncSequence, Sendable {
    /// A line, which may be empty.
    public typealias Element = String

    let body: BodySequence
    let limit: Int

    /// The iterator over the lines.
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

      /// Returns the next line, or nil at the end of the body.
      ///
      /// - Throws: Always ``HTTP/Error``; ``HTTP/Error/Code/tooLarge`` if a line exceeds the limit, in which case the
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

    /// Creates an iterator; if there are several, each chunk of the body is delivered to only one of them.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(body, limit) }
  }
}

extension HTTP.BodySequence {
  /// The lines of the body, of at most 1 MiB each.
  public var lines: HTTP.LineSequence { lines(upTo: 1 << 20) }

  /// Returns the lines of the body.
  ///
  /// - Parameter limit: The maximum length of a line in bytes.
  public func lines(upTo limit: Int) -> HTTP.LineSequence { HTTP.LineSequence(body: self, limit: Swift.max(0, limit)) }
}
