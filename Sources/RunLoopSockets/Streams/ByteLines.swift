// SPDX-License-Identifier: Apache-2.0

/// An asynchronous sequence of the lines of a socket or stream, without their line feeds and carriage returns.
///
/// Text after the last line feed is also a line, unless it is empty. Invalid UTF-8 is replaced by replacement
/// characters. Supports one task at a time.
public struct ByteLines<Chunks: AsyncSequence & Sendable>: AsyncSequence, Sendable where Chunks.Element == [UInt8] {
  let chunks: Chunks
  let limit: Int

  /// Creates an iterator, which starts reading.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(chunks: chunks.makeAsyncIterator(), pieces: ByteCutter(limit: limit))
  }

  /// An iterator that waits for each line.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var chunks: Chunks.AsyncIterator
    fileprivate var pieces: ByteCutter

    /// Returns the next line, or `nil` at the end or if the task is cancelled.
    ///
    /// - Throws: A ``PieceTooLongError`` if a line is longer than the limit, and the errors of the chunks.
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

/// An asynchronous sequence of the frames of a socket or stream.
///
/// Each frame is preceded by its length as a four-byte big-endian number, as ``Socket/send(frame:)`` sends it.
/// Supports one task at a time.
public struct ByteFrames<Chunks: AsyncSequence & Sendable>: AsyncSequence, Sendable where Chunks.Element == [UInt8] {
  let chunks: Chunks
  let limit: Int

  /// Creates an iterator, which starts reading.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(chunks: chunks.makeAsyncIterator(), pieces: ByteCutter(limit: limit))
  }

  /// An iterator that waits for each frame.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var chunks: Chunks.AsyncIterator
    fileprivate var pieces: ByteCutter

    /// Returns the bytes of the next frame, which may be empty, or `nil` at the end or if the task is cancelled.
    ///
    /// - Throws: A ``PieceTooLongError`` if a frame is longer than the limit, a ``CutFrameError`` if the input ends
    ///   within a frame, and the errors of the chunks.
    public mutating func next() async throws -> [UInt8]? {
      while true {
        if let frame = try pieces.nextFrame() { return Array(frame) }
        guard let more = try await chunks.next() else {
          // After a cancellation, the bytes that have arrived can still be used by a later call.
          guard !Task.isCancelled, pieces.restCount > 0 else { return nil }
          throw CutFrameError(byteCount: pieces.restCount)
        }
        pieces.feed(more)
      }
    }
  }
}

/// An error that is thrown when a line or frame is longer than the limit.
public struct PieceTooLongError: Error, Hashable, Sendable {
  /// The maximum length of a line or frame in bytes.
  public let limit: Int

  package init(limit: Int) { self.limit = limit }
}

extension PieceTooLongError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String { "a line or frame has more than \(limit) bytes" }
}

/// An error that is thrown when a socket or stream ends within a frame.
public struct CutFrameError: Error, Hashable, Sendable {
  /// The number of bytes of the frame that have arrived, including its length field.
  public let byteCount: Int

  package init(byteCount: Int) { self.byteCount = byteCount }
}

extension CutFrameError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String { "the end came after \(byteCount) bytes of a frame" }
}

/// Splits bytes that arrive in chunks into lines or frames.
struct ByteCutter: Sendable {
  let limit: Int
  private var bytes: [UInt8] = []
  /// The start of the next line or frame, and the end of the bytes already searched for a line feed.
  private var (start, seen) = (0, 0)

  init(limit: Int) { self.limit = max(0, limit) }

  mutating func feed(_ more: [UInt8]) {
    if start > 0 {
      bytes.removeFirst(start)
      seen -= start
      start = 0
    }
    bytes += more
  }

  /// Returns the next complete line.
  ///
  /// - Complexity: O(*n*), where *n* is the number of bytes not searched before.
  mutating func nextLine() throws(PieceTooLongError) -> ArraySlice<UInt8>? {
    let end = bytes[seen...].firstIndex(of: UInt8(ascii: "\n"))
    seen = end ?? bytes.count
    guard line(upTo: seen).count <= limit else { throw PieceTooLongError(limit: limit) }
    guard let end else { return nil }
    defer { (start, seen) = (end + 1, end + 1) }
    return line(upTo: end)
  }

  /// Returns the next complete frame.
  mutating func nextFrame() throws(PieceTooLongError) -> ArraySlice<UInt8>? {
    guard bytes.count - start >= 4 else { return nil }
    let length = bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
    guard length <= limit else { throw PieceTooLongError(limit: limit) }
    let end = start + 4 + length
    guard end <= bytes.count else { return nil }
    defer { (start, seen) = (end, end) }
    return bytes[start + 4..<end]
  }

  /// Returns the remaining bytes as the last line, or `nil` if there are none.
  mutating func takeLastLine() -> ArraySlice<UInt8>? {
    guard restCount > 0 else { return nil }
    defer { (start, seen) = (bytes.count, bytes.count) }
    return line(upTo: bytes.count)
  }

  /// The number of bytes after the last line or frame.
  var restCount: Int { bytes.count - start }

  private func line(upTo end: Int) -> ArraySlice<UInt8> {
    let line = bytes[start..<end]
    return line.last == UInt8(ascii: "\r") ? line.dropLast() : line
  }
}
