// SPDX-License-Identifier: Apache-2.0

/// The cells of a rectangle, row by row.
public struct Grid: Hashable, Sendable {
  /// The number of columns and rows.
  public let size: Size
  var cells: ContiguousArray<Cell>

  /// Makes a grid of blanks; a negative width or height counts as 0.
  ///
  /// - Complexity: O(n) in the cells.
  public init(size: Size) {
    self.size = Size(width: max(0, size.width), height: max(0, size.height))
    cells = ContiguousArray(repeating: .blank, count: self.size.width * self.size.height)
  }

  /// A cell by its column and row.
  ///
  /// Setting one cell alone may leave half of a wide character; ``Canvas`` prevents that.
  ///
  /// - Precondition: The point lies in the grid.
  public subscript(x: Int, y: Int) -> Cell {
    get {
      precondition(x >= 0 && x < size.width && y >= 0 && y < size.height)
      return cells[y * size.width + x]
    }
    set {
      precondition(x >= 0 && x < size.width && y >= 0 && y < size.height)
      cells[y * size.width + x] = newValue
    }
  }

  /// The text of a row, without the blanks at its end.
  public func text(row: Int) -> String {
    var text = ""
    for x in 0..<size.width { if let character = self[x, row].character { text.append(character) } }
    while text.last == " " { text.removeLast() }
    return text
  }
}
