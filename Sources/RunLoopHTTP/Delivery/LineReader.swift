// SPDX-License-Identifier: Apache-2.0

/// Splits bytes into lines, which end with a line feed, a carriage return, or both.
struct LineReader {
  struct TooLong: Swift.Error {}

  private let limit: Int
  private var bytes: [UInt8] = []
  /// The start of the unreturned bytes, and the end of those known to contain no line ending.
  private var (first, searched) = (0, 0)
  /// Whether the last line ended with a carriage return, so that a line feed that follows belongs to it.
  private var isAfterReturn = false

  /// - Parameter limit: The maximum length of a line in bytes.
  init(limit: Int) { self.limit = limit }

  /// Adds bytes to split.
  mutating func feed(_ chunk: [UInt8]) {
    if first > 0 {
      bytes.removeFirst(first)
      searched -= first
      first = 0
    }
    bytes += chunk
  }

  /// Returns the next complete line, or nil if there is none.
  ///
  /// - Complexity: O(n), where n is the number of bytes that have not been searched before.
  mutating func next() throws(TooLong) -> String? {
    if isAfterReturn, first < bytes.count {
      isAfterReturn = false
      if bytes[first] == 10 {
        first += 1
        searched = max(searched, first)
      }
    }
    while searched < bytes.count {
      let byte = bytes[searched]
      if byte == 10 || byte == 13 {
        let line = text(to: searched)
        isAfterReturn = byte == 13
        first = searched + 1
        searched = first
        return line
      }
      searched += 1
      guard searched - first <= limit else { throw TooLong() }
    }
    return nil
  }

  /// Returns the unterminated text at the end of the input, or nil if there is none.
  mutating func last() -> String? {
    guard first < bytes.count else { return nil }
    let line = text(to: bytes.count)
    (first, searched) = (bytes.count, bytes.count)
    return line
  }

  private func text(to end: Int) -> String { String(decoding: bytes[first..<end], as: UTF8.self) }
}
