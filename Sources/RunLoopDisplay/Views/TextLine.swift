// SPDX-License-Identifier: Apache-2.0

/// A line that is edited: its characters, and the cursor between two of them.
///
/// What is before the cursor and what is behind it are kept apart, so that an edit does not depend on the length of the
/// line: characters that join are looked for around the cursor alone.
struct TextLine {
  private var before = ""
  /// What is behind the cursor, the last character first.
  private var after: [Character] = []
  /// The text behind the cursor; nil: not known.
  private var afterText: String? = ""
  private var beforeCount = 0
  private var beforeWidth = 0
  private var afterWidth = 0
  /// How many cells of the line are left out at its beginning, so that the cursor is seen.
  private(set) var hidden = 0

  /// The character that is shown for each; nil: they are shown.
  var mask: Character? {
    didSet { if mask != oldValue { measure() } }
  }

  init(_ text: String, mask: Character? = nil) {
    before = text
    self.mask = mask
    for character in text {
      beforeCount += 1
      beforeWidth += width(character)
    }
  }

  /// How many characters are before the cursor; kept within the line.
  ///
  /// - Complexity: O(n) in the characters between the two places.
  var cursor: Int {
    get { beforeCount }
    set {
      let wanted = min(max(0, newValue), count)
      while beforeCount > wanted { pushAfter(popBefore()) }
      while beforeCount < wanted { pushBefore(popAfter()) }
    }
  }

  /// How many characters the line has.
  var count: Int { beforeCount + after.count }

  var characters: [Character] { Array(before) + after.reversed() }

  var text: String {
    mutating get {
      let end = afterText ?? String(after.reversed())
      afterText = end
      return before + end
    }
  }

  /// How many characters before the cursor belong to the word there, with the blanks between it and the cursor.
  var wordBefore: Int { Self.word(before.reversed()) }

  /// How many characters behind the cursor belong to the word there, with the blanks before it.
  var wordAfter: Int { Self.word(after.reversed()) }

  private static func word(_ characters: some Sequence<Character>) -> Int {
    var count = 0
    var hasBegun = false
    for character in characters {
      let isPart = character.isLetter || character.isNumber
      if hasBegun, !isPart { break }
      hasBegun = hasBegun || isPart
      count += 1
    }
    return count
  }

  private mutating func measure() {
    beforeWidth = before.reduce(0) { $0 + width($1) }
    afterWidth = after.reduce(0) { $0 + width($1) }
  }

  private func width(_ character: Character) -> Int { mask == nil ? Int(Cell(character).width) : 1 }

  private mutating func popBefore() -> Character {
    let character = before.removeLast()
    beforeCount -= 1
    beforeWidth -= width(character)
    return character
  }

  private mutating func pushBefore(_ character: Character) {
    before.append(character)
    beforeCount += 1
    beforeWidth += width(character)
  }

  private mutating func popAfter() -> Character {
    let character = after.removeLast()
    afterText = nil
    afterWidth -= width(character)
    return character
  }

  private mutating func pushAfter(_ character: Character) {
    after.append(character)
    afterText = nil
    afterWidth += width(character)
  }

  /// Puts characters in before the cursor; false if there are none.
  ///
  /// - Complexity: O(n) in the new characters.
  mutating func insert(_ new: some Collection<Character>) -> Bool {
    guard !new.isEmpty else { return false }
    if beforeCount > 0 {
      // A letter and its accent that are typed one after the other are one character.
      for character in String(popBefore()) + String(new) { pushBefore(character) }
    } else {
      for character in String(new) { pushBefore(character) }
    }
    join()
    return true
  }

  mutating func deleteBackward() -> Bool {
    guard beforeCount > 0 else { return false }
    _ = popBefore()
    join()
    return true
  }

  mutating func deleteForward() -> Bool {
    guard !after.isEmpty else { return false }
    _ = popAfter()
    join()
    return true
  }

  /// Deletes as many characters before the cursor; returns them.
  mutating func deleteBackward(count: Int) -> String {
    var deleted: [Character] = []
    for _ in 0..<min(count, beforeCount) { deleted.append(popBefore()) }
    join()
    return String(deleted.reversed())
  }

  /// Deletes as many characters behind the cursor; returns them.
  mutating func deleteForward(count: Int) -> String {
    var deleted = ""
    for _ in 0..<min(count, after.count) { deleted.append(popAfter()) }
    join()
    return deleted
  }

  /// Lets characters on both sides of the cursor become one where Unicode has it so; the cursor is behind it then.
  private mutating func join() {
    while beforeCount > 0, let next = after.last {
      let last = popBefore()
      let joined = Array(String(last) + String(next))
      guard joined != [last, next] else { return pushBefore(last) }
      _ = popAfter()
      for character in joined.dropLast() { pushBefore(character) }
      // What is left of it may join what follows, as flags do whose letters are counted in pairs.
      pushBefore(joined[joined.count - 1])
    }
  }

  /// Moves the visible part so that it has the cursor in it.
  ///
  /// - Complexity: O(1).
  mutating func scroll(toFit columns: Int) {
    let atCursor = after.last.map(self.width) ?? 1
    let whole = beforeWidth + afterWidth + 1
    hidden = min(hidden, beforeWidth, max(0, whole - columns))
    if beforeWidth + atCursor - hidden > columns { hidden = beforeWidth + atCursor - columns }
  }

  /// Calls a closure with the characters that begin in the visible part, and with their columns there.
  ///
  /// - Complexity: O(n) in the width.
  func forEachVisible(width columns: Int, _ body: (_ index: Int, _ column: Int, Character) -> Void) {
    var column = beforeWidth - hidden
    var index = beforeCount
    var visible: [(Int, Int, Character)] = []
    for character in before.reversed() {
      column -= width(character)
      index -= 1
      guard column >= 0 else { break }
      visible.append((index, column, character))
    }
    for (index, column, character) in visible.reversed() { body(index, column, mask ?? character) }
    column = beforeWidth - hidden
    index = beforeCount
    for character in after.reversed() {
      guard column < columns else { return }
      body(index, column, mask ?? character)
      column += width(character)
      index += 1
    }
  }

  /// The column of the cursor in the visible part.
  var cursorColumn: Int { beforeWidth - hidden }

  /// How many characters are before a column of the visible part.
  func index(at column: Int, width columns: Int) -> Int {
    var found = column < cursorColumn ? 0 : count
    var isFound = false
    forEachVisible(width: columns) { index, start, character in
      guard !isFound, column < start + width(character) else { return }
      isFound = true
      found = index
    }
    return found
  }
}
