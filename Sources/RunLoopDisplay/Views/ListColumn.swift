// SPDX-License-Identifier: Apache-2.0

/// A column of a ``ListView``.
///
/// Text that is wider than the column is truncated with an ellipsis.
public struct ListColumn: Hashable, Sendable {
  /// The title, which is shown in the list's header row.
  public var title: String
  /// The width in cells, where negative values count as zero, or `nil`, the default, to share the rest.
  public var width: Int?
  /// The alignment of the title and the texts of the column.
  public var alignment: Label.Alignment

  /// Creates a column.
  public init(_ title: String, width: Int? = nil, alignment: Label.Alignment = .left) {
    self.title = title
    self.width = width
    self.alignment = alignment
  }
}

/// The horizontal layout of the columns of a list, which are separated by blanks.
struct ColumnLayout {
  let columns: [ListColumn]
  let width: Int
  private let places: [Range<Int>]

  init(_ columns: [ListColumn] = [], width: Int = 0) {
    self.columns = columns
    self.width = width
    var x = 0
    places = Arrangement.lengths(columns.map(\.width), spacing: 1, room: width).map { length in
      defer { x += length + 1 }
      return x..<x + length
    }
  }

  var isEmpty: Bool { columns.isEmpty }

  /// Draws a text in each column, without allocating memory.
  func draw(_ text: (Int) -> String?, _ canvas: inout Canvas, _ style: Style) {
    for (index, place) in places.enumerated() where !place.isEmpty {
      guard let text = text(index) else { return }
      if let end = text.end(leavingRoomForEllipsisIn: place.count) {
        canvas.draw(text[..<end.index], at: Point(x: place.lowerBound, y: 0), style: style)
        canvas.draw("…", at: Point(x: place.lowerBound + end.cells, y: 0), style: style)
        continue
      }
      let free = place.count - text.cellWidth
      let x =
        switch columns[index].alignment {
        case .left: 0
        case .center: free / 2
        case .right: free
        }
      canvas.draw(text, at: Point(x: place.lowerBound + x, y: 0), style: style)
    }
  }
}

/// The header row of a list, which shows the titles of its columns.
@MainActor
final class ListHeader: View {
  override init(frame: Rect = .zero) {
    super.init(frame: frame)
    isUserInteractionEnabled = false
    background = .plain
  }

  override func draw(_ canvas: inout Canvas) {
    guard let list = superview as? ListView else { return }
    canvas.fill(Rect(origin: .zero, size: frame.size), style: list.headerStyle)
    let layout = list.columnLayout
    layout.draw({ layout.columns[$0].title }, &canvas, list.headerStyle)
  }
}
