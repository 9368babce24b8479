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
    let count = min(rows.count, Self.maximumCount - rowCount)
    guard count > 0 else { return }
    let place = heights.start(of: first)
    let isAbove = place < contentOffset.y
    let new = heightsOfNewRows(first..<first + count)
    heights.insert(count: count, new, at: first)
    renumber(selection: selectedRow.map { $0 >= first ? $0 + count : $0 }) { $0 >= first ? $0 + count : $0 }
    if isAbove { shift(by: heights.start(of: first + count) - place) }
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
    let hasLostSelection = selectedRow.map { gone.contains($0) } ?? false
    let selection = selectedRow.flatMap { row -> Int? in
      guard row >= gone.lowerBound else { return row }
      let moved = gone.contains(row) ? gone.lowerBound : row - gone.count
      return rowCount == 0 ? nil : min(moved, rowCount - 1)
    }
    renumber(selection: selection, isOther: hasLostSelection) { index in
      gone.contains(index) ? nil : index >= gone.upperBound ? index - gone.count : index
    }
    shift(by: -above)
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
    let all = measuredHeights
    let offset = contentOffset.y
    let height = all.start(of: index + 1) - all.start(of: index)
    let above = min(all.start(of: index + 1), offset) - min(all.start(of: index), offset)
    heights.remove(index..<index + 1)
    let isAbove = heights.start(of: new) < offset - above
    heights.insert(count: 1, [height], at: new)
    let number = { (row: Int) in
      let without = row > index ? row - 1 : row
      return row == index ? new : without >= new ? without + 1 : without
    }
    renumber(selection: selectedRow.map(number), number)
    shift(by: (isAbove ? height : 0) - above)
  }

  /// The heights of rows that are new in the model, if they are needed now.
  private func heightsOfNewRows(_ rows: Range<Int>) -> [Int] {
    guard let heightForRow, heights.needsHeights(at: rows.lowerBound) else { return [] }
    return rows.map(heightForRow)
  }

  /// Gives rows that exist, and the selection, their new numbers; a row that has none is needed no more.
  private func renumber(selection: Int?, isOther: Bool = false, _ number: (Int) -> Int?) {
    if isAsking {
      // Rows are being provided under their old numbers.
      reloadAfterAsking()
    } else {
      var kept: [ListRow] = []
      for row in rows {
        if let new = number(row.index) {
          row.index = new
          kept.append(row)
        } else {
          row.isSelected = false
          spare.append(row)
        }
      }
      rows = kept.sorted { $0.index < $1.index }
    }
    rowsDidChange()
    changeSelection(to: selection, isOther: isOther)
    setNeedsLayout()
  }

  /// Moves what is visible without moving it on the screen.
  private func shift(by distance: Int) {
    guard distance != 0 else { return }
    bounds.origin.y = max(0, contentOffset.y + distance)
  }
}
