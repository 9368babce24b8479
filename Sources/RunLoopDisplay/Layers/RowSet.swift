// SPDX-License-Identifier: Apache-2.0

/// The rows of a screen that are to be composed anew.
///
/// Whole rows, so that no half of a wide character is left at an edge.
struct RowSet: Hashable {
  private var isMarked: ContiguousArray<Bool>
  private(set) var isEmpty = true

  /// Makes a set of no row.
  init(height: Int) { isMarked = ContiguousArray(repeating: false, count: max(0, height)) }

  /// Marks rows; those that the screen does not have are ignored.
  mutating func insert(_ rows: Range<Int>) {
    for row in rows.clamped(to: 0..<isMarked.count) {
      isMarked[row] = true
      isEmpty = false
    }
  }

  /// Takes out the first rows that follow each other; nil if there are none.
  ///
  /// - Parameter row: Those before it stay.
  mutating func takeBand(from row: Int = 0) -> Range<Int>? {
    guard !isEmpty, let first = isMarked.dropFirst(row).firstIndex(of: true) else {
      // Rows may have been marked behind the caller's back.
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
