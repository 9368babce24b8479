// SPDX-License-Identifier: Apache-2.0

import Glibc

/// An index of the part of a file read so far, in which a line is found by reading from the mark before it.
struct LineIndex: Sendable {
  /// A line whose offset is known.
  struct Mark: Hashable, Sendable {
    var line: Int
    var offset: Int
  }

  /// The maximum distance between marks: this many lines, or the next line after this many bytes.
  private static let lines = 64
  private static let bytes = 65_536

  /// The marks, in order.
  private(set) var marks: ContiguousArray<Mark> = [Mark(line: 0, offset: 0)]
  /// The number of bytes read.
  private(set) var byteCount = 0
  /// The number of lines that have begun.
  private var begun = 1
  private var lastLineOffset = 0

  init() {}

  /// The number of lines, without an empty one after the last line end.
  var lineCount: Int { byteCount > lastLineOffset ? begun : begun - 1 }

  /// Indexes the next bytes of the file.
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

  /// Returns the index of the last mark at or before a line.
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

  /// Returns the byte range from a mark to the next one, or to the end.
  func range(of mark: Int) -> Range<Int> {
    marks[mark].offset..<(mark + 1 < marks.count ? marks[mark + 1].offset : max(marks[mark].offset, byteCount))
  }
}
