// SPDX-License-Identifier: Apache-2.0

// Rows that come, go and move in the model.
extension ListView {
  /// Shows rows that the model has got.
  ///
  /// The selection stays on its row. What is visible stays in its place if rows are added above it. The provider is
  /// called for those of the new rows that are visible, and for no other.
  ///
  /// The corresponding function of UIKit is `insertRows(at:with:)`.
  ///
  /// - Parameter rows: The numbers of the new rows, which the model has already. Rows that would not follow the others
  ///   are added behind the last; no more are added than ``maximumCount`` allows.
  public func insertRows(at rows: Range<Int>) {
    let first = min(max(0, rows.lowerBound), rowCount)
    let count = min(rows.upperBound.saturatingSubtract(rows.lowerBound), Self.maximumCount - rowCount)
    guard count > 0 else { return }
    let place = heights.start(of: first)
    let isAbove = place < contentOffset.y
    let new = heightsOfNewRows(first..<first + count)
    heights.insert(count: count, new, at: first)
    renumber(shift: isAbove ? heights.start(of: first + count) - place : 0) { $0 >= first ? $0 + count : $0 }
  }

  /// Shows that the model has lost rows.
  ///
  /// The selection stays on its row; if that has gone, the row that follows is selected, or the last. What is visible
  /// stays in its place if rows above it have gone.
  ///
  /// The corresponding function of UIKit is `deleteRows(at:with:)`.
  ///
  /// - Parameter rows: The numbers that the rows had; numbers of no row are ignored.
  public func deleteRows(at rows: Range<Int>) {
    let gone = rows.clamped(to: 0..<rowCount)
    guard !gone.isEmpty else { return }
    let offset = contentOffset.y
    let above = min(heights.start(of: gone.upperBound), offset) - min(heights.start(of: gone.lowerBound), offset)
    heights.remove(gone)
    renumber(shift: -above, next: rowCount == 0 ? nil : min(gone.lowerBound, rowCount - 1)) { index in
      gone.contains(index) ? nil : index >= gone.upperBound ? index - gone.count : index
    }
  }

  /// Shows that a row has moved in the model; the selection moves with it.
  ///
  /// The corresponding function of UIKit is `moveRow(at:to:)`.
  ///
  /// - Parameters:
  ///   - index: The number that the row had; if no row has it, nothing happens.
  ///   - newIndex: Its number now; one that no row has counts as the nearest.
  public func moveRow(at index: Int, to newIndex: Int) {
    guard (0..<rowCount).contains(index) else { return }
    let new = min(max(0, newIndex), rowCount - 1)
    guard new != index else { return }
    // A height that is not known may be needed now; the user's code knows the row by its new number.
    let height = index < heights.known ? [height(ofRow: index)] : heightsOfNewRows(new..<new + 1)
    let offset = contentOffset.y
    let above = min(heights.start(of: index + 1), offset) - min(heights.start(of: index), offset)
    heights.remove(index..<index + 1)
    let place = heights.start(of: new)
    heights.insert(count: 1, height, at: new)
    let below = place < offset - above ? heights.start(of: new + 1) - place : 0
    renumber(shift: below - above) { row in
      let without = row > index ? row - 1 : row
      return row == index ? new : without >= new ? without + 1 : without
    }
  }

  /// The heights of rows that are new in the model, if they are needed now.
  private func heightsOfNewRows(_ rows: Range<Int>) -> [Int] {
    guard let heightForRow, heights.needsHeights(at: rows.lowerBound) else { return [] }
    return rows.map(heightForRow)
  }

  /// Gives rows that exist, and the selection, their new numbers; a row that has none is needed no more.
  ///
  /// - Parameters:
  ///   - distance: How far what is visible moves in the contents, so that it stays where it is on the screen.
  ///   - next: The row that is selected if the selected one has no number.
  final func renumber(shift distance: Int = 0, next: Int? = nil, _ number: @escaping (Int) -> Int?) {
    if isAsking {
      // Rows are being provided under their old numbers.
      reloadAfterAsking()
      rowsDidChange(nil)
    } else {
      let gone = rows.filter { number($0.index) == nil }
      rows.removeAll { number($0.index) == nil }
      for row in gone { row.index = -1 }
      spare += gone
      for row in rows { row.index = number(row.index) ?? row.index }
      rows.sort { $0.index < $1.index }
      rowsDidChange(number)
    }
    if distance != 0 { bounds.origin.y = max(0, contentOffset.y + distance) }
    setNeedsLayout()
    // Last: it calls the user's code, which may change the list again.
    guard let selectedRow else { return }
    let selection = number(selectedRow)
    changeSelection(to: selection ?? next, isOther: selection == nil)
  }
}
