// SPDX-License-Identifier: Apache-2.0

/// The lines of a connection or stream, without the line feeds and carriage returns that end them.
///
/// What follows the last line feed is a line too, unless it is empty. Bytes that are not UTF-8 become replacement
/// characters. One task iterates at a time.
public struct ByteLines<Chunks: AsyncSequence & Sendable>: AsyncSequence, Sendable where Chunks.Element == [UInt8] {
  let chunks: Chunks
  let limit: Int

  /// Makes an iterator, which begins to read.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(chunks: chunks.makeAsyncIterator(), pieces: ByteCutter(limit: limit))
  }

  /// Waits for the lines.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var chunks: Chunks.AsyncIterator
    fileprivate var pieces: ByteCutter

    /// Returns the next line; nil at the end, or when the task is cancelled.
    ///
    /// - Throws: A ``PieceTooLongError`` if a line has more bytes than it may, and what the chunks throw.
    public mutating func next() async throws -> String? {
      while true {
        if let line = try pieces.nextLine() { return String(decoding: line, as: UTF8.self) }
        guard let more = try await chunks.next() else {
          return Task.isCancelled ? nil : pieces.takeLastLine().map { String(decoding: $0, as: UTF8.self) }
        }
        pieces.feed(more)
      }
    }
  }
}

/// The frames of a connection or stream: each is preceded by its length in four bytes, the most significant first.
///
/// One task iterates at a time. The lengths of ``Socket/send(frame:)`` are read by this.
public struct ByteFrames<Chunks: AsyncSequence & Sendable>: AsyncSequence, Sendable where Chunks.Element == [UInt8] {
  let chunks: Chunks
  let limit: Int

  /// Makes an iterator, which begins to read.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(chunks: chunks.makeAsyncIterator(), pieces: ByteCutter(limit: limit))
  }

  /// Waits for the frames.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var chunks: Chunks.AsyncIterator
    fileprivate var pieces: ByteCutter

    /// Returns the bytes of the next frame, which may be none; nil at the end, or when the task is cancelled.
    ///
    /// - Throws: A ``PieceTooLongError`` if a frame is longer than it may be, a ``CutFrameError`` if the end comes
    ///   within a frame, and what the chunks throw.
    public mutating func next() async throws -> [UInt8]? {
      while true {
        if let frame = try pieces.nextFrame() { return Array(frame) }
        guard let more = try await chunks.next() else {
          // A cancelled task may continue later with what has arrived.
          guard !Task.isCancelled, pieces.restCount > 0 else { return nil }
          throw CutFrameError(byteCount: pieces.restCount)
        }
        pieces.feed(more)
      }
    }
  }
}

/// A line or frame is longer than the limit.
public struct PieceTooLongError: Error, Hashable, Sendable {
  /// The most bytes of a line or frame.
  public let limit: Int

  package init(limit: Int) { self.limit = limit }
}

extension PieceTooLongError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String { "a line or frame has more than \(limit) bytes" }
}

/// A connection or stream has ended within a frame.
public struct CutFrameError: Error, Hashable, Sendable {
  /// How many bytes of the frame have arrived, its length included.
  public let byteCount: Int

  package init(byteCount: Int) { self.byteCount = byteCount }
}

extension CutFrameError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String { "the end came after \(byteCount) bytes of a frame" }
}

/// Cuts bytes that arrive in chunks into lines or frames.
struct ByteCutter: Sendable {
  let limit: Int
  private var bytes: [UInt8] = []
  /// Where the next piece begins, and how far no end was found.
  private var (start, seen) = (0, 0)

  init(limit: Int) { self.limit = max(0, limit) }

  /// Adds what has arrived.
  mutating func feed(_ more: [UInt8]) {
    if start > 0 {
      bytes.removeFirst(start)
      seen -= start
      start = 0
    }
    bytes += more
  }

  /// The next line that has its end.
  ///
  /// - Complexity: O(n) in the bytes that were not looked at before.
  mutating func nextLine() throws(PieceTooLongError) -> ArraySlice<UInt8>? {
    let end = bytes[seen...].firstIndex(of: UInt8(ascii: "\n"))
    seen = end ?? bytes.count
    guard seen - start <= limit else { throw PieceTooLongError(limit: limit) }
    guard let end else { return nil }
    defer { (start, seen) = (end + 1, end + 1) }
    return line(upTo: end)
  }

  /// The next frame that is there as a whole.
  mutating func nextFrame() throws(PieceTooLongError) -> ArraySlice<UInt8>? {
    guard bytes.count - start >= 4 else { return nil }
    let length = bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
    guard length <= limit else { throw PieceTooLongError(limit: limit) }
    let end = start + 4 + length
    guard end <= bytes.count else { return nil }
    defer { (start, seen) = (end, end) }
    return bytes[start + 4..<end]
  }

  /// The line that has arrived without its end; nil if that is nothing.
  mutating func takeLastLine() -> ArraySlice<UInt8>? {
    guard restCount > 0 else { return nil }
    defer { (start, seen) = (bytes.count, bytes.count) }
    return line(upTo: bytes.count)
  }

  /// How many bytes have arrived behind the last piece.
  var restCount: Int { bytes.count - start }

  private func line(upTo end: Int) -> ArraySlice<UInt8> {
    let line = bytes[start..<end]
    return line.last == UInt8(ascii: "\r") ? line.dropLast() : line
  }
}
