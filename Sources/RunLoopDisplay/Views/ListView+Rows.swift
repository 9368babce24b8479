// SPDX-License-Identifier: Apache-2.0

// Insertion, deletion and moves of rows.
extension ListView {
  /// Inserts rows that were added to the model.
  ///
  /// The selection stays on the same row. Inserting rows above the visible ones does not move the visible rows on the
  /// screen. The provider is called only for new rows that are visible.
  ///
  /// The corresponding function of UIKit is `insertRows(at:with:)`.
  ///
  /// - Parameter rows: The indexes of the new rows, which the model already contains. Rows beyond the end are added
  ///   at the end. The number of rows is limited to ``maximumCount``.
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

  /// Deletes rows that were removed from the model.
  ///
  /// The selection stays on the same row. If that row is deleted, the following one is selected, or the last. Deleting
  /// rows above the visible ones does not move the visible rows on the screen.
  ///
  /// The corresponding function of UIKit is `deleteRows(at:with:)`.
  ///
  /// - Parameter rows: The indexes that the rows had. Indexes without a row are ignored.
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

  /// Moves a row that was moved in the model, together with the selection if it is selected.
  ///
  /// The corresponding function of UIKit is `moveRow(at:to:)`.
  ///
  /// - Parameters:
  ///   - index: The index that the row had. If there is no such row, the call has no effect.
  ///   - newIndex: The new index of the row, clamped to the existing rows.
  public func moveRow(at index: Int, to newIndex: Int) {
    guard (0..<rowCount).contains(index) else { return }
    let new = min(max(0, newIndex), rowCount - 1)
    guard new != index else { return }
    // An unknown height may be needed now, and user code knows the row by its new index.
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

  /// Returns the heights of new rows if they are needed now.
  private func heightsOfNewRows(_ rows: Range<Int>) -> [Int] {
    guard let heightForRow, heights.needsHeights(at: rows.lowerBound) else { return [] }
    return rows.map(heightForRow)
  }

  /// Renumbers the existing rows and the selection, and discards rows that get no number.
  ///
  /// - Parameters:
  ///   - distance: How far to scroll the contents so that the visible rows stay in place on the screen.
  ///   - next: The row to select if the selected row gets no number.
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
    // The selection changes last, because it calls user code that may change the list again.
    guard let selectedRow else { return }
    let selection = number(selectedRow)
    changeSelection(to: selection ?? next, isOther: selection == nil)
  }
}
