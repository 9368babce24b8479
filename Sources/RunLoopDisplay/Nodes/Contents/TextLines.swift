// SPDX-License-Identifier: Apache-2.0

/// A text in lines of a width.
///
/// A line ends at a line end of the text, at the last space that leaves it within the width, or beside a wide
/// character; a word that is longer than a line is broken where the line is full. Spaces at which a line is broken are
/// left out.
struct TextLines {
  struct Line: Hashable {
    let text: Substring
    /// In cells.
    let width: Int
  }

  /// The lines, of which none is wider than was asked for.
  private(set) var lines: ContiguousArray<Line> = []
  /// Whether there is more text than lines were asked for.
  private(set) var isTruncated = false

  /// Breaks a text.
  ///
  /// - Parameters:
  ///   - text: The text.
  ///   - width: The cells of a line; less than one leaves no line.
  ///   - limit: The most lines.
  /// - Complexity: O(n) in the characters of the lines.
  init(_ text: String, width: Int, limit: Int = .max) {
    guard width > 0, limit > 0, !text.isEmpty else {
      isTruncated = !text.isEmpty
      return
    }
    var rest = text[...]
    while true {
      if lines.count == limit {
        isTruncated = true
        return
      }
      var breaker = LineBreaker(rest, width)
      let line = breaker.next()
      lines.append(Line(text: rest[..<line.end], width: line.width))
      guard let begin = line.next else { return }
      rest = rest[begin...]
    }
  }

  /// The width of the widest line.
  var width: Int { lines.reduce(0) { max($0, $1.width) } }

  /// How many cells a character takes.
  static func width(of character: Character) -> Int { Int(Cell(character).width) }
}

/// Finds the end of a line.
private struct LineBreaker {
  struct Line {
    /// Behind the last character of the line.
    var end: String.Index
    /// In cells.
    var width: Int
    /// Where the next line begins; nil: there is none.
    var next: String.Index?
  }

  private let text: Substring
  private let limit: Int
  /// The cells up to here.
  private var width = 0
  /// The last place where the line can be broken.
  private var place: Line?
  private var isAfterSpace = false
  private var isAfterWide = false

  init(_ text: Substring, _ limit: Int) {
    self.text = text
    self.limit = limit
  }

  mutating func next() -> Line {
    var index = text.startIndex
    while index < text.endIndex {
      let character = text[index]
      let next = text.index(after: index)
      if character.isNewline { return whole(to: index, next) }
      if character == " " {
        passSpace(at: index, next)
      } else if let line = pass(TextLines.width(of: character), at: index, next) {
        return line
      }
      index = next
    }
    return whole(to: index, nil)
  }

  /// A line that was not broken, without the spaces at its end for which there is no room.
  private func whole(to end: String.Index, _ next: String.Index?) -> Line {
    if width > limit, let place { return Line(end: place.end, width: place.width, next: next) }
    return Line(end: end, width: width, next: next)
  }

  /// A space: those at which a line is broken may stand beyond its limit.
  private mutating func passSpace(at index: String.Index, _ next: String.Index) {
    if isAfterSpace { place?.next = next } else { place = Line(end: index, width: width, next: next) }
    width += 1
    (isAfterSpace, isAfterWide) = (true, false)
  }

  /// Another character; returns the line if it has no room in it.
  private mutating func pass(_ cells: Int, at index: String.Index, _ next: String.Index) -> Line? {
    if width > 0, !isAfterSpace, isAfterWide || cells == 2 { place = Line(end: index, width: width, next: index) }
    guard width + cells > limit else {
      width += cells
      (isAfterSpace, isAfterWide) = (false, cells == 2)
      return nil
    }
    if let place { return place }
    if width > 0 { return Line(end: index, width: width, next: index) }
    // A wide character in a line of one cell stands alone, and is drawn as far as there is room.
    return Line(end: next, width: limit, next: next < text.endIndex ? next : nil)
  }
}
