// SPDX-License-Identifier: Apache-2.0

/// Cuts bytes into lines, which end with a line feed, a carriage return, or both.
struct LineReader {
  /// A line has more bytes than it may.
  struct TooLong: Swift.Error {}

  private let limit: Int
  private var bytes: [UInt8] = []
  /// From where on nothing was returned, and up to where there is no end of a line.
  private var (first, searched) = (0, 0)
  /// Whether a line feed belongs to the end of the last line.
  private var isAfterReturn = false

  /// - Parameter limit: How many bytes a line may have.
  init(limit: Int) { self.limit = limit }

  /// Leaves bytes to be cut.
  mutating func feed(_ chunk: [UInt8]) {
    if first > 0 {
      bytes.removeFirst(first)
      searched -= first
      first = 0
    }
    bytes += chunk
  }

  /// The next line that has its end; nil if there is none.
  ///
  /// - Complexity: O(n) of the bytes that were not looked at before.
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

  /// What follows the end of the last line when nothing more comes; nil if that is nothing.
  mutating func last() -> String? {
    guard first < bytes.count else { return nil }
    let line = text(to: bytes.count)
    (first, searched) = (bytes.count, bytes.count)
    return line
  }

  private func text(to end: Int) -> String { String(decoding: bytes[first..<end], as: UTF8.self) }
}
