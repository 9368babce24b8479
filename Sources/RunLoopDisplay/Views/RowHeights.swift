// SPDX-License-Identifier: Apache-2.0

/// Where the rows of a list begin and end, as a value.
///
/// Rows that are all one cell high cost no memory. Where rows have heights of their own, these are added one after the
/// other; the rows at the end may still lack theirs.
struct RowHeights {
  /// The highest row, in cells.
  static let limit = 1 << 12

  /// The number of rows.
  private(set) var count = 0
  /// Where each of the first rows ends; nil: every row is one cell high.
  private var ends: ContiguousArray<Int>?

  /// Whether every row is one cell high.
  var areEqual: Bool { ends == nil }

  /// The first row whose height is not known.
  var known: Int { ends?.count ?? count }

  /// The height of all rows that is known.
  var total: Int { ends.map { $0.last ?? 0 } ?? count }

  /// Forgets the heights from a row on, of rows that have heights of their own.
  mutating func forget(from row: Int = 0) {
    guard let count = ends?.count, row < count else { return }
    ends?.removeLast(count - row)
  }

  /// Forgets every height.
  ///
  /// - Parameter areEqual: Whether each row is one cell high from now on.
  mutating func reset(areEqual: Bool) { ends = areEqual ? nil : [] }

  mutating func setCount(_ count: Int) {
    self.count = count
    forget(from: count)
  }

  /// Adds the height of the first row that has none, if there is one.
  mutating func append(_ height: Int) {
    guard known < count else { return }
    let end = total + Self.clamped(height)
    ends?.append(end)
  }

  /// Where a row begins.
  ///
  /// - Complexity: O(1).
  func start(of row: Int) -> Int {
    guard let ends else { return row }
    let row = min(row, ends.count)
    return row == 0 ? 0 : ends[row - 1]
  }

  /// The row at a distance from the beginning, of those whose heights are known; their number if there is none.
  ///
  /// - Complexity: O(log n) in the rows.
  func row(at y: Int) -> Int {
    guard let ends else { return min(max(0, y), count) }
    var (low, high) = (0, ends.count)
    while low < high {
      let middle = (low + high) / 2
      if ends[middle] > y { high = middle } else { low = middle + 1 }
    }
    return low
  }

  /// The rows that are seen in a part of the list.
  func rows(from y: Int, height: Int) -> Range<Int> {
    let first = row(at: y)
    guard height > 0, first < known else { return first..<first }
    return first..<min(row(at: y + height - 1) + 1, known)
  }

  /// Whether rows that are put in at a place are added with their heights, and not asked for them later.
  func needsHeights(at row: Int) -> Bool { ends != nil && row <= known }

  /// Makes room for rows.
  ///
  /// - Parameter heights: Their heights, if they are needed.
  /// - Complexity: O(n) in the rows.
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

  /// Takes rows out.
  ///
  /// - Complexity: O(n) in the rows.
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
