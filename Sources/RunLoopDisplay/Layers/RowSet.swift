// SPDX-License-Identifier: Apache-2.0

/// The rows of a screen that must be composed again.
///
/// The set consists of whole rows, so that wide characters are never cut in half at an edge.
struct RowSet: Hashable {
  private var isMarked: ContiguousArray<Bool>
  private(set) var isEmpty = true

  init(height: Int) { isMarked = ContiguousArray(repeating: false, count: max(0, height)) }

  /// Marks rows, ignoring those outside the screen.
  mutating func insert(_ rows: Range<Int>) {
    for row in rows.clamped(to: 0..<isMarked.count) {
      isMarked[row] = true
      isEmpty = false
    }
  }

  /// Removes and returns the first range of consecutive rows, or returns nil if there are none.
  ///
  /// - Parameter row: The first row to consider.
  mutating func takeBand(from row: Int = 0) -> Range<Int>? {
    guard !isEmpty, let first = isMarked.dropFirst(row).firstIndex(of: true) else {
      // Rows before the given one may have been marked in the meantime.
      isEmpty = isEmpty || !isMarked.contains(true)
      return nil
    }
    var end = first
    while end < isMarked.count, isMarked[end] {
      isMarked[end] = false
      end += 1
    }
    return first..<end
  }
}
