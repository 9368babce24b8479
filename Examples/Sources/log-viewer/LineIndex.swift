// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Where the lines of a file begin, as far as it has been read: every line can be found by reading a little before it.
struct LineIndex: Sendable {
  /// A line whose place is known.
  struct Mark: Hashable, Sendable {
    var line: Int
    var offset: Int
  }

  /// There is a mark at the latest after so many lines, and after so many bytes at the next line.
  private static let lines = 64
  private static let bytes = 65_536

  /// The marks, in order.
  private(set) var marks: ContiguousArray<Mark> = [Mark(line: 0, offset: 0)]
  /// How many bytes have been read.
  private(set) var byteCount = 0
  /// The lines that have begun.
  private var begun = 1
  private var lastLineOffset = 0

  init() {}

  /// How many lines there are: what follows the last line's end is one only if it has a character.
  var lineCount: Int { byteCount > lastLineOffset ? begun : begun - 1 }

  /// Takes note of the bytes that follow those before.
  mutating func append(_ bytes: UnsafeRawBufferPointer) {
    var position = 0
    while position < bytes.count, let start = bytes.baseAddress,
      let end = memchr(start + position, 0x0A, bytes.count - position)
    {
      position = UnsafeRawPointer(end) - start + 1
      let offset = byteCount + position
      if let last = marks.last, begun - last.line >= Self.lines || offset - last.offset >= Self.bytes {
        marks.append(Mark(line: begun, offset: offset))
      }
      begun += 1
      lastLineOffset = offset
    }
    byteCount += bytes.count
  }

  /// The number of the last mark that does not lie behind a line.
  ///
  /// - Complexity: O(log n).
  func mark(before line: Int) -> Int {
    var low = 0
    var high = marks.count
    while high - low > 1 {
      let middle = (low + high) / 2
      if marks[middle].line <= line { low = middle } else { high = middle }
    }
    return low
  }

  /// The bytes from a mark to the next, or to the end.
  func range(of mark: Int) -> Range<Int> {
    marks[mark].offset..<(mark + 1 < marks.count ? marks[mark + 1].offset : max(marks[mark].offset, byteCount))
  }
}
