// SPDX-License-Identifier: Apache-2.0

import RunLoopDisplay

/// An emulated terminal that executes what an encoder may write, and records anything else as an error.
struct ScreenEmulator {
  private(set) var grid: Grid
  /// The output that real terminals would not understand or would handle differently.
  private(set) var errors: [String] = []
  /// The replies of the terminal since they were last taken.
  var answers: [UInt8] = []
  private(set) var modes: Set<Int> = [7, 25]
  /// The stack of flags of the keyboard protocol.
  private(set) var keyboards: [Int] = []
  let features: HeadlessTerminal.Features
  var faults = HeadlessTerminal.Faults()

  /// The title of the window, the number of times the bell rang, and the text on the clipboard.
  private(set) var title: String?
  private(set) var bellCount = 0
  private(set) var clipboard: String?
  private var shape = TextCursor.Shape.block
  /// The visible state of the cursor.
  var cursor: TextCursor {
    TextCursor(at: Point(x: min(x, grid.size.width - 1), y: y), shape: modes.contains(25) ? shape : nil)
  }

  private(set) var x = 0
  private(set) var y = 0
  private var pen = Style.plain
  private var saved = (x: 0, y: 0, pen: Style.plain, wraps: true)
  /// Whether restoring the saved position also restores the wrapping mode.
  var restoresWrapping = false
  /// Whether a line feed in the last row scrolls the screen, as it does with inline frames.
  var scrollsAtEnd = false
  /// The scrolling region.
  private var margins: Range<Int>
  private var parser = OutputParser()
  /// The position of the last character, which further scalars may be combined with.
  private var last: Point?

  init(size: Size, features: HeadlessTerminal.Features) {
    grid = Grid(size: size)
    margins = 0..<size.height
    self.features = features
  }

  /// The maximum number of errors to record.
  private static let mostErrors = 100

  private mutating func fail(_ text: String) { if errors.count < Self.mostErrors { errors.append(text) } }

  /// Resizes the screen as when a user resizes the window, after which its contents are undefined.
  mutating func resize(to size: Size) {
    grid = Grid(size: size)
    for y in 0..<size.height { for x in 0..<size.width { grid[x, y] = Cell("?") } }
    margins = 0..<size.height
    x = min(x, size.width - 1)
    y = min(y, size.height - 1)
    last = nil
  }

  mutating func write(_ bytes: some Sequence<UInt8>) {
    for byte in bytes {
      switch parser.take(byte) {
      case .nothing: break
      case .scalar(let scalar): write(scalar)
      case .control(let byte): control(byte)
      case .escape(0x4D): reverse()
      case .escape(0x37): saved = (x, y, pen, modes.contains(7))
      case .escape(0x38): restore()
      case .escape(let byte): fail("ESC \(Character(Unicode.Scalar(byte)))")
      case .sequence(let sequence): carryOut(sequence)
      case .command(let text): command(text)
      case .error(let text): fail(text)
      }
    }
  }

  private mutating func restore() {
    (x, y, pen) = (saved.x, saved.y, saved.pen)
    guard restoresWrapping else { return }
    if saved.wraps { modes.insert(7) } else { modes.remove(7) }
  }

  private mutating func command(_ text: String) {
    if text.hasPrefix("2;") {
      title = String(text.dropFirst(2))
    } else if text.hasPrefix("52;c;") {
      clipboard = Self.decoded(text.dropFirst(5))
    } else if features.decorates, let link = Self.link(text) {
      pen.link = link.isEmpty ? nil : link
    } else {
      fail("OSC \(text)")
    }
  }

  // MARK: Characters

  private mutating func write(_ scalar: Unicode.Scalar) {
    if let last, let before = grid[last.x, last.y].character {
      let joined = String(before) + String(Character(scalar))
      let isNarrow = Cell(Character(scalar)).character != Character(scalar)
      if features.clusters ? joined.count == 1 : isNarrow && joined.count == 1 {
        let cell = Cell(Character(joined), style: grid[last.x, last.y].style)
        // Without wrapping, some terminals combine the mark with the character before the last column.
        if isBehind, !modes.contains(7) {
          guard !faults.marksMissLastColumn else { return markBefore(last, scalar) }
          fail("a mark behind the last column")
        }
        // A terminal without support for clusters does not change the width.
        guard features.clusters || cell.width == grid[last.x, last.y].width else { return }
        x = last.x
        return put(cell)
      }
    }
    let cell = Cell(Character(scalar), style: pen)
    let isUnknown = faults.unicodeVersion.map { CharacterWidth.isNew(scalar.value, since: $0) } ?? false
    put(isUnknown ? cell.narrow : cell)
  }

  /// Adds a mark to the character before the last one.
  private mutating func markBefore(_ last: Point, _ mark: Unicode.Scalar) {
    guard last.x > 0, let character = grid[last.x - 1, last.y].character else { return }
    let joined = Cell(Character(String(character) + String(Character(mark))), style: grid[last.x - 1, last.y].style)
    if joined.width == 1 { grid[last.x - 1, last.y] = joined }
  }

  private mutating func put(_ cell: Cell) {
    let width = Int(cell.width)
    guard x + width <= grid.size.width else {
      return fail("\(cell.character ?? " ") in column \(x) of \(grid.size.width)")
    }
    clearHalves(x, x + width)
    grid[x, y] = cell
    if width == 2 { grid[x + 1, y] = .continuation(style: cell.style) }
    last = Point(x: x, y: y)
    x += width
  }

  /// Blanks the other halves of wide characters that are partly overwritten.
  private mutating func clearHalves(_ first: Int, _ end: Int) {
    if first > 0, grid[first, y].width == 0 { grid[first - 1, y] = Cell(" ", style: grid[first - 1, y].style) }
    if end < grid.size.width, grid[end, y].width == 0 { grid[end, y] = Cell(" ", style: grid[end, y].style) }
  }

  private mutating func erase(_ columns: Range<Int>) {
    guard !columns.isEmpty else { return }
    clearHalves(columns.lowerBound, columns.upperBound)
    for x in columns { grid[x, y] = blank }
    last = nil
  }

  private var blank: Cell { Cell(" ", style: features.erasesWithColor ? Style(background: pen.background) : .plain) }

  // MARK: The cursor

  /// Whether the cursor is at the end of the row, where terminals differ in the column that they assume.
  private var isBehind: Bool { x >= grid.size.width }

  private mutating func control(_ byte: UInt8) {
    last = nil
    switch byte {
    case 0x07: bellCount += 1
    case 0x08:
      if isBehind || x == 0 { fail("backspace in column \(x)") }
      x = max(0, x - 1)
    case 0x0A:
      if y + 1 >= grid.size.height {
        if scrollsAtEnd { scroll(by: 1) } else { fail("line feed in the last row") }
      }
      y = min(grid.size.height - 1, y + 1)
    case 0x0D: x = 0
    case 0x18: break
    default: fail("control character \(byte)")
    }
  }

  private mutating func reverse() {
    last = nil
    if y == 0 { fail("reverse line feed in the first row") }
    y = max(0, y - 1)
  }

  private mutating func go(x: Int, y: Int, _ sequence: OutputSequence) {
    let isInside = x >= 0 && y >= 0 && x < grid.size.width && y < grid.size.height
    if !isInside { fail("\(sequence) leads to \(x), \(y)") }
    self.x = max(0, min(grid.size.width - 1, x))
    self.y = max(0, min(grid.size.height - 1, y))
  }

  // MARK: Sequences

  private mutating func carryOut(_ sequence: OutputSequence) {
    let before = last
    last = nil
    let count = max(1, sequence[0] ?? 1)
    switch sequence.name {
    case "H": go(x: (sequence[1] ?? 1) - 1, y: (sequence[0] ?? 1) - 1, sequence)
    case "A": vertical(-count, sequence)
    case "B": vertical(count, sequence)
    case "C": horizontal(count, sequence)
    case "D": horizontal(-count, sequence)
    case "G": go(x: count - 1, y: y, sequence)
    case "d": vertical(count - 1 - y, sequence)
    case "J":
      erase(min(x, grid.size.width)..<grid.size.width)
      if sequence[0] == 2 { x = 0 }
      let row = y
      for other in (sequence[0] == 2 ? 0 : y + 1)..<grid.size.height {
        y = other
        erase(0..<grid.size.width)
      }
      y = row
      if let first = sequence[0], first != 0, first != 2 { fail("\(sequence)") }
    case "K":
      if isBehind { fail("\(sequence) behind the last column") }
      if let first = sequence[0], first != 0 { fail("\(sequence)") }
      erase(min(x, grid.size.width)..<grid.size.width)
    case "X":
      if x + count > grid.size.width { fail("\(sequence) in column \(x)") }
      erase(min(x, grid.size.width)..<min(grid.size.width, x + count))
    case "b":
      guard features.repeats, let before, let character = grid[before.x, before.y].character else {
        return fail("\(sequence) without a character")
      }
      for _ in 0..<count { put(Cell(character, style: pen)) }
    case "S" where features.scrolls: scroll(by: count)
    case "T" where features.scrolls: scroll(by: -count)
    case "r":
      let top = (sequence[0] ?? 1) - 1
      let end = sequence[1] ?? grid.size.height
      guard top >= 0, end <= grid.size.height, top + 1 < end || grid.size.height == 1 else {
        return fail("\(sequence)")
      }
      margins = top..<end
      x = 0
      y = 0
    case "m": style(sequence)
    case "?h", "?l": setMode(sequence)
    case "?$p": report(sequence[0] ?? 0)
    case ">q": if let version = features.version { answers += "\u{1B}P>|\(version)\u{1B}\\".utf8 }
    case "?u": if features.keyboard { answers += "\u{1B}[?\(keyboards.last ?? 0)u".utf8 }
    case "t": if ![22, 23].contains(sequence[0]) { fail("\(sequence)") }
    case " q":
      switch sequence[0] {
      case 0, 2: shape = .block
      case 4: shape = .underline
      case 6: shape = .bar
      default: fail("\(sequence)")
      }
    case "n" where sequence[0] == 6: answers += "\u{1B}[\(y + 1);\(min(x, grid.size.width - 1) + 1)R".utf8
    case "c": answers += "\u{1B}[?62;22c".utf8
    case ">u" where features.keyboard: keyboards.append(sequence[0] ?? 0)
    case "<u" where features.keyboard:
      if keyboards.popLast() == nil { fail("\(sequence) without a beginning") }
    default: fail("\(sequence)")
    }
  }

  private mutating func vertical(_ distance: Int, _ sequence: OutputSequence) {
    // The column is kept, even where terminals differ.
    let column = x
    go(x: min(x, grid.size.width - 1), y: y + distance, sequence)
    x = column
  }

  private mutating func horizontal(_ distance: Int, _ sequence: OutputSequence) {
    if isBehind { fail("\(sequence) behind the last column") }
    go(x: x + distance, y: y, sequence)
  }

  private mutating func scroll(by count: Int) {
    let old = grid
    for y in margins {
      for x in 0..<grid.size.width {
        grid[x, y] = margins.contains(y + count) ? old[x, y + count] : blank
      }
    }
  }

  private mutating func setMode(_ sequence: OutputSequence) {
    let isOn = sequence.name == "?h"
    for mode in sequence.numbers.compactMap({ $0 }) where !faults.ignoredModes.contains(mode) {
      switch mode {
      case 7, 25, 1002, 1003, 1004, 1006, 1049, 2004: break
      case 2026 where features.synchronizes: break
      case 2027 where features.clusters: break
      default: fail("\(sequence)")
      }
      if isOn { modes.insert(mode) } else { modes.remove(mode) }
      if mode == 1049 {
        grid = Grid(size: grid.size)
        last = nil
      }
    }
  }

  private mutating func report(_ mode: Int) {
    let isKnown =
      faults.ignoredModes.contains(mode)
      ? false : mode == 2026 ? features.synchronizes : mode == 2027 ? features.clusters : false
    let state = isKnown ? (modes.contains(mode) ? 1 : 2) : 0
    answers += "\u{1B}[?\(mode);\(state)$y".utf8
  }

  private mutating func style(_ sequence: OutputSequence) {
    var numbers = sequence.numbers.map { $0 ?? 0 }[...]
    if numbers.isEmpty { numbers = [0] }
    let link = pen.link
    while let number = numbers.popFirst() {
      let parameter =
        sequence.parameters.isEmpty ? [] : sequence.parameters[sequence.parameters.count - numbers.count - 1]
      if parameter.count > 1 {
        guard features.decorates, setUnderline(parameter) else { return fail("\(sequence)") }
        continue
      }
      switch number {
      case 0:
        pen = .plain
        // A link is only ended by its own sequence.
        pen.link = link
      case 1: pen.attributes.insert(.bold)
      case 2: pen.attributes.insert(.dim)
      case 3: pen.attributes.insert(.italic)
      case 4:
        pen.attributes.insert(.underline)
        pen.underlineStyle = .single
      case 7: pen.attributes.insert(.reverse)
      case 9: pen.attributes.insert(.strikethrough)
      case 22: pen.attributes.subtract([.bold, .dim])
      case 23: pen.attributes.remove(.italic)
      case 24:
        pen.attributes.remove(.underline)
        pen.underlineStyle = .single
      case 59 where features.decorates: pen.underlineColor = .default
      case 27: pen.attributes.remove(.reverse)
      case 29: pen.attributes.remove(.strikethrough)
      case 30...37: pen.foreground = .palette(UInt8(number - 30))
      case 90...97: pen.foreground = .palette(UInt8(number - 82))
      case 39: pen.foreground = .default
      case 40...47: pen.background = .palette(UInt8(number - 40))
      case 100...107: pen.background = .palette(UInt8(number - 92))
      case 49: pen.background = .default
      case 38, 48:
        guard let color = color(&numbers) else { return fail("\(sequence)") }
        if number == 38 { pen.foreground = color } else { pen.background = color }
      default: return fail("\(sequence)")
      }
    }
  }

  /// Executes a parameter that contains colons, or returns false if it is unknown.
  private mutating func setUnderline(_ parameter: [Int?]) -> Bool {
    switch (parameter[0], parameter[1]) {
    case (4, let shape?):
      guard let style = UInt8(exactly: shape).flatMap(Style.UnderlineStyle.init) else { return false }
      pen.attributes.insert(.underline)
      pen.underlineStyle = style
    case (58, 5):
      guard parameter.count == 3, let index = parameter[2].flatMap({ UInt8(exactly: $0) }) else { return false }
      pen.underlineColor = .palette(index)
    case (58, 2):
      let parts = parameter.dropFirst(3).compactMap { $0.flatMap { UInt8(exactly: $0) } }
      guard parameter.count == 6, parameter[2] == nil, parts.count == 3 else { return false }
      pen.underlineColor = .rgb(parts[0], parts[1], parts[2])
    default: return false
    }
    return true
  }

  private func color(_ numbers: inout ArraySlice<Int>) -> Color? {
    switch numbers.popFirst() {
    case 5: return numbers.popFirst().flatMap { UInt8(exactly: $0) }.map { .palette($0) }
    case 2:
      let parts = numbers.prefix(3).compactMap { UInt8(exactly: $0) }
      numbers = numbers.dropFirst(3)
      return parts.count == 3 ? .rgb(parts[0], parts[1], parts[2]) : nil
    default: return nil
    }
  }
}
