// SPDX-License-Identifier: Apache-2.0

/// A line that is edited: its characters, and the cursor between two of them.
struct TextLine: Hashable {
  private(set) var characters: [Character]
  /// How many characters are before the cursor; kept within the line.
  var cursor: Int {
    didSet { cursor = min(max(0, cursor), characters.count) }
  }
  /// How many cells of the line are left out at its beginning, so that the cursor is seen.
  private(set) var hidden = 0

  init(_ text: String) {
    characters = Array(text)
    cursor = characters.count
  }

  var text: String { String(characters) }

  /// Puts characters in before the cursor; false if there are none.
  mutating func insert(_ new: some Collection<Character>) -> Bool {
    guard !new.isEmpty else { return false }
    set(String(characters[..<cursor]) + String(new), String(characters[cursor...]))
    return true
  }

  mutating func deleteBackward() -> Bool {
    guard cursor > 0 else { return false }
    set(String(characters[..<(cursor - 1)]), String(characters[cursor...]))
    return true
  }

  mutating func deleteForward() -> Bool {
    guard cursor < characters.count else { return false }
    set(String(characters[..<cursor]), String(characters[(cursor + 1)...]))
    return true
  }

  /// Sets what is before the cursor and behind it.
  ///
  /// Two characters may become one, as a letter and its accent that were typed one after the other. If one becomes one
  /// with what is behind the cursor, the cursor is behind both.
  private mutating func set(_ before: String, _ after: String) {
    characters = Array(before + after)
    var count = 0
    var rest = before.utf8.count
    while rest > 0 {
      rest -= characters[count].utf8.count
      count += 1
    }
    cursor = count
  }

  /// Moves the visible part so that it has the cursor in it.
  mutating func scroll(toFit width: Int) {
    let before = characters[..<cursor].reduce(0) { $0 + Int(Cell($1).width) }
    let atCursor = cursor < characters.count ? Int(Cell(characters[cursor]).width) : 1
    let whole = characters[cursor...].reduce(before) { $0 + Int(Cell($1).width) } + 1
    hidden = min(hidden, before, max(0, whole - width))
    if before + atCursor - hidden > width { hidden = before + atCursor - width }
  }
}
