// SPDX-License-Identifier: Apache-2.0

/// The positions of the rows of a list.
///
/// Rows that are all one cell high need no memory. Individual heights are added one after another, so the last rows may
/// lack one.
struct RowHeights {
  /// The maximum height of a row, in cells.
  static let limit = 1 << 12

  private(set) var count = 0
  /// The end positions of the first rows, or nil if every row is one cell high.
  private var ends: ContiguousArray<Int>?

  /// Whether every row is one cell high.
  var areEqual: Bool { ends == nil }

  /// The index of the first row whose height is not known.
  var known: Int { ends?.count ?? count }

  /// The total of the known heights.
  var total: Int { ends.map { $0.last ?? 0 } ?? count }

  /// Forgets individual heights from a row on.
  mutating func forget(from row: Int = 0) {
    guard let count = ends?.count, row < count else { return }
    ends?.removeLast(count - row)
  }

  /// Forgets all heights.
  ///
  /// - Parameter areEqual: Whether every row is now one cell high.
  mutating func reset(areEqual: Bool) { ends = areEqual ? nil : [] }

  mutating func setCount(_ count: Int) {
    self.count = count
    forget(from: count)
  }

  /// Sets the height of the first row whose height is not known, if there is one.
  mutating func append(_ height: Int) {
    guard known < count else { return }
    let end = total + Self.clamped(height)
    ends?.append(end)
  }

  /// Returns the position at which a row begins.
  ///
  /// - Complexity: O(1).
  func start(of row: Int) -> Int {
    guard let ends else { return row }
    let row = min(row, ends.count)
    return row == 0 ? 0 : ends[row - 1]
  }

  /// Returns the row at a position, or the number of known rows if there is none.
  ///
  /// - Complexity: O(log n), where n is the number of rows.
  func row(at y: Int) -> Int {
    guard let ends else { return min(max(0, y), count) }
    var (low, high) = (0, ends.count)
    while low < high {
      let middle = (low + high) / 2
      if ends[middle] > y { high = middle } else { low = middle + 1 }
    }
    return low
  }

  /// Returns the rows that are visible in a section of the list.
  func rows(from y: Int, height: Int) -> Range<Int> {
    let first = row(at: y)
    guard height > 0, first < known else { return first..<first }
    return first..<min(row(at: y + height - 1) + 1, known)
  }

  /// Whether rows inserted at an index need their heights immediately.
  func needsHeights(at row: Int) -> Bool { ends != nil && row <= known }

  /// Inserts rows.
  ///
  /// - Parameter heights: The heights of the rows, if they are needed.
  /// - Complexity: O(n), where n is the number of rows.
  mutating func insert(count new: Int, _ heights: [Int], at row: Int) {
    defer { count += new }
    guard needsHeights(at: row) else { return }
    let start = start(of: row)
    var end = start
    let new = heights.map { height in
      end += Self.clamped(height)
      return end
    }
    for index in row..<known { ends?[index] += end - start }
    ends?.insert(contentsOf: new, at: row)
  }

  /// Removes rows.
  ///
  /// - Complexity: O(n), where n is the number of rows.
  mutating func remove(_ rows: Range<Int>) {
    count -= rows.count
    guard ends != nil else { return }
    let rows = rows.clamped(to: 0..<known)
    let removed = start(of: rows.upperBound) - start(of: rows.lowerBound)
    ends?.removeSubrange(rows)
    for index in min(rows.lowerBound, known)..<known { ends?[index] -= removed }
  }

  private static func clamped(_ height: Int) -> Int { min(max(1, height), limit) }
}
