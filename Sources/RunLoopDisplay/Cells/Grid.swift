// SPDX-License-Identifier: Apache-2.0

/// A rectangle of cells, stored row by row.
public struct Grid: Hashable, Sendable {
  /// The number of columns and rows.
  public let size: Size
  var cells: ContiguousArray<Cell>

  /// The maximum number of cells in a grid.
  public static let maximumCount = 1 << 26

  /// Creates a grid of blank cells, where a negative width or height counts as 0.
  ///
  /// - Precondition: The grid has at most ``maximumCount`` cells.
  /// - Complexity: O(n), where n is the number of cells.
  public init(size: Size) {
    self.size = Size(width: max(0, size.width), height: max(0, size.height))
    let (count, isTooLarge) = self.size.width.multipliedReportingOverflow(by: self.size.height)
    guard !isTooLarge, count <= Self.maximumCount else {
      fatalError("a grid of \(size.width) by \(size.height) cells is too large: it can have \(Self.maximumCount)")
    }
    cells = ContiguousArray(repeating: .blank, count: count)
  }

  /// Accesses the cell at a column and row.
  ///
  /// Setting a single cell may leave half of a wide character, which ``Canvas`` prevents.
  ///
  /// - Precondition: The column and row are within the grid.
  public subscript(x: Int, y: Int) -> Cell {
    get {
      guard x >= 0, x < size.width, y >= 0, y < size.height else { failAt(x, y) }
      return cells[y * size.width + x]
    }
    set {
      guard x >= 0, x < size.width, y >= 0, y < size.height else { failAt(x, y) }
      cells[y * size.width + x] = newValue
    }
  }

  @inline(never)
  private func failAt(_ x: Int, _ y: Int) -> Never {
    fatalError("the cell in column \(x) of row \(y) is not in a grid of \(size.width) by \(size.height) cells")
  }

  /// Returns the text of a row, without trailing blanks.
  ///
  /// - Precondition: The grid has the row.
  public func text(row: Int) -> String {
    guard row >= 0, row < size.height else {
      fatalError("the row \(row) is not in a grid of \(size.width) by \(size.height) cells")
    }
    var text = ""
    for x in 0..<size.width { if let character = self[x, row].character { text.append(character) } }
    while text.last == " " { text.removeLast() }
    return text
  }
}
