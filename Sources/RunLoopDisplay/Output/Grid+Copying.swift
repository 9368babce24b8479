// SPDX-License-Identifier: Apache-2.0

// Bulk changes of grids that reuse their memory.

extension Grid {
  /// Copies the cells of a grid that is at least as large, without invisible styles or halves of wide characters.
  mutating func copy(normalizing other: borrowing Grid) {
    let size = self.size
    let stride = other.size.width
    cells.withUnsafeMutableBufferPointer { target in
      other.cells.withUnsafeBufferPointer { source in
        for y in 0..<size.height {
          var x = 0
          while x < size.width {
            let cell = source[y * stride + x]
            let place = y * size.width + x
            switch cell.width {
            case 1: target[place] = cell.normalized
            case 2 where x + 1 < size.width && source[y * stride + x + 1].width == 0:
              target[place] = cell
              target[place + 1] = .continuation(style: cell.style)
              x += 1
            default: target[place] = Cell(glyph: Glyphs.space, width: 1, style: cell.style).normalized
            }
            x += 1
          }
        }
      }
    }
  }

  /// Copies the cells of a grid of the same size.
  mutating func copy(_ other: borrowing Grid) {
    cells.withUnsafeMutableBufferPointer { target in
      other.cells.withUnsafeBufferPointer { source in _ = target.update(fromContentsOf: source) }
    }
  }

  mutating func clear() {
    cells.withUnsafeMutableBufferPointer { $0.update(repeating: .blank) }
  }

  /// Scrolls a range of rows, upwards if the count is positive, and blanks the rows that scroll in.
  mutating func scroll(_ rows: Range<Int>, by count: Int) {
    let width = size.width
    cells.withUnsafeMutableBufferPointer { cells in
      if count > 0 {
        for index in rows.lowerBound * width..<(rows.upperBound - count) * width {
          cells[index] = cells[index + count * width]
        }
        for index in (rows.upperBound - count) * width..<rows.upperBound * width { cells[index] = .blank }
      } else {
        for index in ((rows.lowerBound - count) * width..<rows.upperBound * width).reversed() {
          cells[index] = cells[index + count * width]
        }
        for index in rows.lowerBound * width..<(rows.lowerBound - count) * width { cells[index] = .blank }
      }
    }
  }
}
