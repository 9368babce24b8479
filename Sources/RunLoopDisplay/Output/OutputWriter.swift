// SPDX-License-Identifier: Apache-2.0

/// A writer of control sequences that tracks the position of the terminal's cursor and the current style.
struct OutputWriter {
  /// The state of a terminal besides its cells.
  struct State {
    /// The column, or a negative value if it is unknown, as after the last column.
    var x = -1
    /// The row, or a negative value if it is unknown.
    var y = -1
    /// The style, with colours that the terminal supports.
    var pen = Style.plain
    var isPenKnown = false
    /// The URL of the text being written, or an empty string.
    var link = ""
  }

  var bytes: ContiguousArray<UInt8> = []
  var state = State()
  var capabilities: TerminalCapabilities
  /// Whether the frame is shown inline, in which case only the saved position of its first cell is known.
  var isInline = false

  init(capabilities: TerminalCapabilities) { self.capabilities = capabilities }

  // MARK: Parts of sequences

  mutating func put(_ byte: UInt8) { bytes.append(byte) }

  mutating func put(_ text: StaticString) {
    for index in 0..<text.utf8CodeUnitCount { bytes.append(text.utf8Start[index]) }
  }

  mutating func put(number: Int) {
    if number >= 10 { put(number: number / 10) }
    bytes.append(0x30 + UInt8(number % 10))
  }

  /// Appends a sequence with a count, which is omitted if it is 1.
  mutating func put(count: Int, _ final: UInt8) {
    put("\u{1B}[")
    if count != 1 { put(number: count) }
    put(final)
  }

  static func digits(_ number: Int) -> Int { number < 10 ? 1 : 1 + digits(number / 10) }

  private static func length(count: Int) -> Int { 3 + (count == 1 ? 0 : digits(count)) }

  // MARK: The cursor

  /// A way to move the cursor to a column of its row.
  private enum Across {
    case none, back(Int), left(Int), right(Int), absolute, rewrite
    case start, startThenRight, startThenRewrite
  }

  /// A way to move the cursor to a row.
  private enum Down { case none, feed(Int), down(Int), up(Int), reverse(Int), absolute }

  /// Moves the cursor with as few bytes as possible.
  ///
  /// `row` contains the final contents of the row, of which cells on the way may be written again.
  mutating func move(toX x: Int, y: Int, row: UnsafeBufferPointer<Cell>) {
    if state.x == x, state.y == y { return }
    let absolute =
      isInline ? .max / 2 : x > 0 ? 4 + Self.digits(y + 1) + Self.digits(x + 1) : y > 0 ? 3 + Self.digits(y + 1) : 3
    var best = absolute
    var across: Across?
    var down = Down.none
    if state.y >= 0 {
      let (vertical, way) = costDown(y)
      if vertical < best {
        let (horizontal, other) = costAcross(x, row: row, limit: best - vertical)
        if vertical + horizontal < best {
          best = vertical + horizontal
          across = other
          down = way
        }
      }
    }
    if let across {
      go(down, y)
      go(across, x, row)
    } else {
      put("\u{1B}[")
      if y > 0 || x > 0 { put(number: y + 1) }
      if x > 0 {
        put(0x3B)
        put(number: x + 1)
      }
      put(0x48)
    }
    state.x = x
    state.y = y
  }

  /// Moves the cursor, regardless of the cells on the way.
  mutating func move(toX x: Int, y: Int) {
    if isInline {
      go(costDown(y).1, y)
      put(count: x + 1, 0x47)
    } else {
      put("\u{1B}[")
      put(number: y + 1)
      put(0x3B)
      put(number: x + 1)
      put(0x48)
    }
    state.x = x
    state.y = y
  }

  private func costDown(_ y: Int) -> (Int, Down) {
    let distance = y - state.y
    if distance == 0 { return (0, .none) }
    var best = (isInline ? .max / 2 : 3 + Self.digits(y + 1), Down.absolute)
    if distance > 0 {
      if distance < best.0 { best = (distance, .feed(distance)) }
      if Self.length(count: distance) < best.0 { best = (Self.length(count: distance), .down(distance)) }
    } else {
      if 2 * -distance < best.0 { best = (2 * -distance, .reverse(-distance)) }
      if Self.length(count: -distance) < best.0 { best = (Self.length(count: -distance), .up(-distance)) }
    }
    return best
  }

  private func costAcross(_ x: Int, row: UnsafeBufferPointer<Cell>, limit: Int) -> (Int, Across) {
    if state.x == x { return (0, .none) }
    if x == 0 { return (1, .start) }
    var best = (3 + Self.digits(x + 1), Across.absolute)
    func consider(_ cost: Int, _ way: Across) { if cost < best.0 { best = (cost, way) } }
    if state.x >= 0, x < state.x {
      consider(state.x - x, .back(state.x - x))
      consider(Self.length(count: state.x - x), .left(state.x - x))
    } else if state.x >= 0 {
      consider(Self.length(count: x - state.x), .right(x - state.x))
      consider(rewriting(row, state.x..<x, limit: best.0), .rewrite)
    }
    consider(1 + Self.length(count: x), .startThenRight)
    consider(1 + rewriting(row, 0..<x, limit: best.0 - 1), .startThenRewrite)
    return best
  }

  /// Returns the cost of writing cells again in the current style, or a large number if that is impossible.
  private func rewriting(_ row: UnsafeBufferPointer<Cell>, _ columns: Range<Int>, limit: Int) -> Int {
    guard columns.count < limit, state.isPenKnown else { return .max / 2 }
    var cost = 0
    for x in columns {
      let cell = row[x]
      guard cell.isPlainText, isWritable(cell) else { return .max / 2 }
      cost += cell.glyph < 0x80 ? 1 : cell.glyph < 0x800 ? 2 : cell.glyph < 0x1_0000 ? 3 : 4
    }
    return cost
  }

  private mutating func go(_ way: Down, _ y: Int) {
    switch way {
    case .none: break
    case .feed(let count): for _ in 0..<count { put(0x0A) }
    case .down(let count): put(count: count, 0x42)
    case .up(let count): put(count: count, 0x41)
    case .reverse(let count): for _ in 0..<count { put("\u{1B}M") }
    case .absolute: put(count: y + 1, 0x64)
    }
  }

  private mutating func go(_ way: Across, _ x: Int, _ row: UnsafeBufferPointer<Cell>) {
    switch way {
    case .none: break
    case .back(let count): for _ in 0..<count { put(0x08) }
    case .left(let count): put(count: count, 0x44)
    case .right(let count): put(count: count, 0x43)
    case .absolute: put(count: x + 1, 0x47)
    case .rewrite: for column in state.x..<x { put(scalar: row[column].glyph) }
    case .start: put(0x0D)
    case .startThenRight:
      put(0x0D)
      put(count: x, 0x43)
    case .startThenRewrite:
      put(0x0D)
      for column in 0..<x { put(scalar: row[column].glyph) }
    }
  }

  /// Whether erasing produces blanks in the terminal's default colours, without a link.
  var erasesPlainly: Bool { state.isPenKnown && state.pen.background.isDefault && state.pen.decoration == 0 }

  // MARK: Cells

  /// Whether a cell can be written in the current style.
  func isWritable(_ cell: Cell) -> Bool {
    let style = capabilities.reduced(cell.style)
    guard state.isPenKnown else { return false }
    if style == state.pen { return true }
    return cell.glyph == Glyphs.space && style.background == state.pen.background
      && style.decoration == state.pen.decoration
      && style.attributes.isDisjoint(with: .drawnOnSpaces)
      && state.pen.attributes.isDisjoint(with: .drawnOnSpaces)
  }

  /// Writes a cell at the cursor, in its style.
  mutating func put(_ cell: Cell, columns: Int) {
    if !isWritable(cell) { setPen(capabilities.reduced(cell.style)) }
    let width = Int(cell.width)
    if cell.glyph < Glyphs.firstCluster {
      if CharacterWidth.joinsPrevious(cell.glyph) { put(count: state.x + 1, 0x47) }
      let isCertain = !CharacterWidth.isNew(cell.glyph, since: capabilities.unicodeVersion)
      // A terminal that uses only one column for it, or omits it, would leave the rest unchanged.
      if !isCertain { put(count: width, 0x58) }
      put(scalar: cell.glyph)
      state.x = CharacterWidth.joinsNext(cell.glyph) || !isCertain ? -1 : state.x + width
    } else {
      // Without wrapping, a terminal may add a mark after the last column to the preceding character.
      let isLast = state.x + width >= columns
      if isLast { put("\u{1B}[?7h") }
      let taken = ClusterTable.shared.write(cell.glyph, whole: capabilities.wholeClusters, to: &self)
      // If the terminal shows a narrower character, the rest of its cells is blanked.
      if let taken, taken < width { put(0x20) }
      if isLast { put("\u{1B}[?7l") }
      state.x = taken.map { $0 <= width } ?? false ? state.x + width : -1
    }
    // The cursor stays at the last column, whose position terminals report differently.
    if state.x >= columns { state.x = -1 }
  }

  mutating func put(scalar value: UInt32) {
    if value < 0x80 {
      bytes.append(UInt8(value))
    } else if value < 0x800 {
      bytes.append(UInt8(0xC0 | value >> 6))
      bytes.append(UInt8(0x80 | value & 0x3F))
    } else if value < 0x1_0000 {
      bytes.append(UInt8(0xE0 | value >> 12))
      bytes.append(UInt8(0x80 | value >> 6 & 0x3F))
      bytes.append(UInt8(0x80 | value & 0x3F))
    } else {
      bytes.append(UInt8(0xF0 | value >> 18))
      bytes.append(UInt8(0x80 | value >> 12 & 0x3F))
      bytes.append(UInt8(0x80 | value >> 6 & 0x3F))
      bytes.append(UInt8(0x80 | value & 0x3F))
    }
  }
}

extension Cell {
  /// Whether the cell contains one scalar of one column that does not combine with its neighbours.
  var isPlainText: Bool {
    width == 1 && glyph < Glyphs.firstCluster && !CharacterWidth.joinsNext(glyph) && !CharacterWidth.isNew(glyph)
  }
}
