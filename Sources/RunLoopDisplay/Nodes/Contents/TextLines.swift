// SPDX-License-Identifier: Apache-2.0

/// A text that is broken into lines of a given width.
///
/// A line ends at a newline, at the last space that fits, or next to a wide character. A word that is longer than a
/// line is broken where the line is full. Spaces at which a line is broken are omitted.
struct TextLines {
  struct Line: Hashable {
    let text: Substring
    /// The width in cells.
    let width: Int
  }

  /// The lines, none of which exceeds the requested width.
  private(set) var lines: ContiguousArray<Line> = []
  /// Whether the text exceeds the requested number of lines.
  private(set) var isTruncated = false

  /// Breaks a text into lines.
  ///
  /// - Parameters:
  ///   - text: The text.
  ///   - width: The width of a line in cells. There are no lines if it is below 1.
  ///   - limit: The maximum number of lines.
  /// - Complexity: O(n), where n is the number of characters in the lines.
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

  var width: Int { lines.reduce(0) { max($0, $1.width) } }

  /// Returns the number of cells that a character occupies.
  static func width(of character: Character) -> Int { Int(Cell(character).width) }
}

/// Finds the end of a line.
private struct LineBreaker {
  struct Line {
    /// The end of the line's last character.
    var end: String.Index
    /// The width in cells.
    var width: Int
    /// The start of the next line, or nil if there is none.
    var next: String.Index?
  }

  private let text: Substring
  private let limit: Int
  /// The width of the characters so far.
  private var width = 0
  /// The last position at which the line can be broken.
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

  /// Returns an unbroken line, without trailing spaces that do not fit.
  private func whole(to end: String.Index, _ next: String.Index?) -> Line {
    if width > limit, let place { return Line(end: place.end, width: place.width, next: next) }
    return Line(end: end, width: width, next: next)
  }

  /// Handles a space, which may extend beyond the limit because a line can be broken there.
  private mutating func passSpace(at index: String.Index, _ next: String.Index) {
    if isAfterSpace { place?.next = next } else { place = Line(end: index, width: width, next: next) }
    width += 1
    (isAfterSpace, isAfterWide) = (true, false)
  }

  /// Handles another character, and returns the line if the character does not fit.
  private mutating func pass(_ cells: Int, at index: String.Index, _ next: String.Index) -> Line? {
    if width > 0, !isAfterSpace, isAfterWide || cells == 2 { place = Line(end: index, width: width, next: index) }
    guard width + cells > limit else {
      width += cells
      (isAfterSpace, isAfterWide) = (false, cells == 2)
      return nil
    }
    if let place { return place }
    if width > 0 { return Line(end: index, width: width, next: index) }
    // A wide character in a line of one cell has the line to itself, and is drawn as far as it fits.
    return Line(end: next, width: limit, next: next < text.endIndex ? next : nil)
  }
}
