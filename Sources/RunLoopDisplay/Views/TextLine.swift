// SPDX-License-Identifier: Apache-2.0

/// A line of text that is being edited, with a cursor between its characters.
///
/// The text before the cursor and the text after it are stored separately, so that the cost of an edit does not
/// depend on the length of the line: only characters next to the cursor can combine.
struct TextLine {
  private var before = ""
  /// The characters after the cursor, in reverse order.
  private var after: [Character] = []
  /// The text after the cursor, or nil if it has not been computed.
  private var afterText: String? = ""
  private var beforeCount = 0
  private var beforeWidth = 0
  private var afterWidth = 0
  /// The number of cells scrolled out at the beginning, so that the cursor is visible.
  private(set) var hidden = 0

  /// The character shown instead of each character, or nil to show the text.
  var mask: Character? {
    didSet { if mask != oldValue { measure() } }
  }

  /// The maximum number of scalars of a character, which limits the cost of an edit next to it.
  ///
  /// It is a letter and 30 marks, as in the Stream-Safe Text Format of Unicode (UAX #15).
  private static let longest = 31

  init(_ text: String, mask: Character? = nil) {
    before = Self.limited(text)
    self.mask = mask
    for character in before {
      beforeCount += 1
      beforeWidth += width(character)
    }
  }

  /// The number of characters before the cursor, clamped to the line.
  ///
  /// - Complexity: O(n), where n is the distance that the cursor moves.
  var cursor: Int {
    get { beforeCount }
    set {
      let wanted = min(max(0, newValue), count)
      while beforeCount > wanted { pushAfter(popBefore()) }
      while beforeCount < wanted { pushBefore(popAfter()) }
    }
  }

  var count: Int { beforeCount + after.count }

  var characters: [Character] { Array(before) + after.reversed() }

  var text: String {
    mutating get {
      let end = afterText ?? String(after.reversed())
      afterText = end
      return before + end
    }
  }

  /// The number of characters from the start of the word before the cursor up to the cursor.
  ///
  /// With a mask, all characters on a side of the cursor are one word, so that the words of the text are not revealed.
  var wordBefore: Int { mask == nil ? Self.word(before.reversed()) : beforeCount }

  /// The number of characters from the cursor to the end of the word after it.
  var wordAfter: Int { mask == nil ? Self.word(after.reversed()) : after.count }

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

  /// Returns a text without the scalars that make a character too long.
  private static func limited(_ text: String) -> String {
    var text = text
    while text.contains(where: { $0.utf8.count > longest && $0.unicodeScalars.count > longest }) {
      var kept = String.UnicodeScalarView()
      for character in text { kept.append(contentsOf: character.unicodeScalars.prefix(longest)) }
      // Characters can combine where scalars were omitted.
      text = String(kept)
    }
    return text
  }

  /// Inserts characters before the cursor, and returns false if that changes nothing.
  ///
  /// - Complexity: O(n), where n is the number of new characters.
  mutating func insert(_ new: some Collection<Character>) -> Bool {
    guard !new.isEmpty else { return false }
    let (count, last) = (beforeCount, before.last)
    // A letter and an accent that are typed separately form one character.
    let start = last == nil ? "" : String(popBefore())
    for character in Self.limited(start + String(new)) { pushBefore(character) }
    join()
    return beforeCount != count || before.last != last
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

  /// Deletes up to `count` characters before the cursor, and returns them.
  mutating func deleteBackward(count: Int) -> String {
    var deleted: [Character] = []
    for _ in 0..<min(count, beforeCount) { deleted.append(popBefore()) }
    join()
    return String(deleted.reversed())
  }

  /// Deletes up to `count` characters after the cursor, and returns them.
  mutating func deleteForward(count: Int) -> String {
    var deleted = ""
    for _ in 0..<min(count, after.count) { deleted.append(popAfter()) }
    join()
    return deleted
  }

  /// Combines the characters around the cursor if they form one character, and moves the cursor after it.
  private mutating func join() {
    while beforeCount > 0, let next = after.last {
      let last = popBefore()
      let joined = Array(Self.limited(String(last) + String(next)))
      guard joined != [last, next] else { return pushBefore(last) }
      _ = popAfter()
      for character in joined.dropLast() { pushBefore(character) }
      // The rest may combine with the next character, as with flags, whose letters are counted in pairs.
      pushBefore(joined[joined.count - 1])
    }
  }

  /// Scrolls so that the cursor is visible.
  ///
  /// - Complexity: O(1).
  mutating func scroll(toFit columns: Int) {
    let atCursor = after.last.map(self.width) ?? 1
    let whole = beforeWidth + afterWidth + 1
    hidden = min(hidden, beforeWidth, max(0, whole - columns))
    if beforeWidth + atCursor - hidden > columns { hidden = beforeWidth + atCursor - columns }
  }

  /// Calls a closure with each character that begins in the visible part, and its column there.
  ///
  /// - Complexity: O(n), where n is the width.
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

  /// The column of the cursor within the visible part.
  var cursorColumn: Int { beforeWidth - hidden }

  /// Returns the number of characters before a column of the visible part.
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
