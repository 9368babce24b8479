// SPDX-License-Identifier: Apache-2.0

/// Turns frames into the bytes that make a terminal show them: only what differs from the frame before, and nothing if
/// nothing does.
///
/// A value without isolation. When it has shown one frame of a size, further ones of that size allocate nothing, unless
/// their bytes need more room than those of any before.
package struct FrameEncoder: Sendable {
  private var writer: OutputWriter
  /// What the terminal shows.
  private var shown = Grid(size: .zero)
  /// What it is to show.
  private var next = Grid(size: .zero)
  /// What it would show after a scroll.
  private var scrolled = Grid(size: .zero)
  /// Whether it is not known what the terminal shows.
  private var isUnknown = true
  /// How many columns and rows the terminal has.
  private var screen: Size

  package init(size: Size, capabilities: TerminalCapabilities) {
    screen = size
    writer = OutputWriter(capabilities: capabilities)
  }

  /// What the terminal can do.
  package var capabilities: TerminalCapabilities {
    get { writer.capabilities }
    set {
      // Clusters and colours that were written for another terminal do not look as they should.
      let isOutOfDate =
        newValue.colors != capabilities.colors
        || newValue.decorates != capabilities.decorates && shown.cells.contains { $0.style.decoration != 0 }
        || newValue.wholeClusters != capabilities.wholeClusters
          && shown.cells.contains { $0.glyph >= Glyphs.firstCluster }
      if isOutOfDate { repaint() }
      writer.capabilities = newValue
    }
  }

  /// The place of the cursor after each frame; nil: it is hidden.
  package var cursor: TextCursor?
  /// How the terminal's cursor was set.
  private var shownShape: TextCursor.Shape?

  /// Appends the sequence that moves the cursor to its place, unless it is there.
  private mutating func putCursor() {
    if shownShape != cursor?.shape {
      if let shape = cursor?.shape {
        writer.put("\u{1B}[")
        writer.put(number: shape.number)
        writer.put(" q\u{1B}[?25h")
      } else {
        writer.put("\u{1B}[?25l")
      }
      shownShape = cursor?.shape
    }
    guard let cursor, !next.size.isEmpty, Rect(origin: .zero, size: screen).contains(cursor.position) else { return }
    let (x, y) = (cursor.position.x, cursor.position.y)
    guard writer.state.x != x || writer.state.y != y else { return }
    writer.move(toX: x, y: y)
  }

  /// Whether the frames are shown below what is on the screen, from the place of the cursor that was saved last.
  package var isInline: Bool {
    get { writer.isInline }
    set { writer.isInline = newValue }
  }

  /// How many rows the terminal has for frames.
  var rows: Int { screen.height }

  /// Whether the next frame is written in full.
  package var isRepainting: Bool { isUnknown }

  /// Lets the next frame be written in full.
  package mutating func repaint() { isUnknown = true }

  /// The terminal was taken: its cursor is hidden, and, for frames below what is on the screen, in the first cell.
  package mutating func cursorIsHidden() {
    shownShape = nil
    writer.state.x = 0
    writer.state.y = 0
  }

  /// Appends what saves the place of the first cell, counted from where the cursor is.
  ///
  /// A terminal that gets another size moves the cursor with its lines, but not the place that was saved.
  package mutating func savePlace(into output: inout ContiguousArray<UInt8>) {
    swap(&writer.bytes, &output)
    defer { swap(&writer.bytes, &output) }
    writer.putLink("", 0)
    writer.put("\u{1B}[m")
    if writer.state.y > 0 { writer.put(count: writer.state.y, 0x41) }
    writer.put("\r\u{1B}7")
    writer.state = OutputWriter.State(x: 0, y: 0, pen: .plain, isPenKnown: true)
  }

  /// The terminal has another size: what it shows is not known any more.
  package mutating func resize(to size: Size) {
    screen = size
    repaint()
  }

  /// Appends what shows a frame.
  ///
  /// What the grid has beyond the terminal's size is left out.
  ///
  /// - Returns: The number of bytes; 0 if the terminal shows the frame already.
  /// - Complexity: O(n) in the cells.
  @discardableResult
  package mutating func encode(
    _ grid: borrowing Grid, scrolls: [ScrollHint] = [], into output: inout ContiguousArray<UInt8>
  ) -> Int {
    swap(&writer.bytes, &output)
    defer { swap(&writer.bytes, &output) }
    let size = Size(width: min(grid.size.width, screen.width), height: min(grid.size.height, screen.height))
    if next.size != size {
      next = Grid(size: size)
      shown = Grid(size: size)
      scrolled = Grid(size: size)
      isUnknown = true
    }
    next.copy(normalizing: grid)
    let start = writer.bytes.count
    if writer.capabilities.synchronizes { writer.put("\u{1B}[?2026h") }
    let frame = writer.bytes.count
    if isUnknown { clear() }
    let body = writer.bytes.count
    let state = writer.state
    putDifferences(from: shown)
    // A scroll costs about as much as this by itself.
    if !scrolls.isEmpty, writer.capabilities.scrolls, writer.bytes.count - body > 6, state.isPenKnown {
      tryScrolls(scrolls, from: body, state)
    }
    putCursor()
    swap(&shown, &next)
    if writer.bytes.count == frame {
      writer.bytes.removeSubrange(start...)
    } else if writer.capabilities.synchronizes {
      writer.put("\u{1B}[?2026l")
    }
    return writer.bytes.count - start
  }

  private mutating func clear() {
    writer.putLink("", 0)
    if isInline {
      // Room is made for all rows, by scrolling if need be, and the first row's place is saved. With the place, some
      // terminals restore whether they wrap.
      writer.put("\u{1B}8\u{1B}[?7l\u{1B}[m\u{1B}[J")
      for _ in 1..<max(1, rows) { writer.put(0x0A) }
      if rows > 1 { writer.put(count: rows - 1, 0x41) }
      writer.put("\r\u{1B}7")
    } else {
      writer.put("\u{1B}[m\u{1B}[r\u{1B}[H\u{1B}[2J")
    }
    writer.state = OutputWriter.State(x: 0, y: 0, pen: .plain, isPenKnown: true)
    shown.clear()
    isUnknown = false
  }

  /// Writes a frame as a scroll and what differs after it, and keeps that if it is shorter.
  private mutating func tryScrolls(_ scrolls: [ScrollHint], from start: Int, _ before: OutputWriter.State) {
    let plainEnd = writer.bytes.count
    let plainState = writer.state
    writer.state = before
    scrolled.copy(shown)
    for hint in scrolls {
      let area = hint.area.intersection(Rect(origin: .zero, size: next.size))
      guard !area.isEmpty, hint.rows != 0, hint.rows.magnitude < UInt(area.size.height) else { continue }
      putScroll(area.minY..<area.maxY, by: hint.rows, abs(hint.rows))
      scrolled.scroll(area.minY..<area.maxY, by: hint.rows)
    }
    putDifferences(from: scrolled)
    if writer.bytes.count - plainEnd < plainEnd - start {
      writer.bytes.removeSubrange(start..<plainEnd)
    } else {
      writer.bytes.removeSubrange(plainEnd...)
      writer.state = plainState
    }
  }

  private mutating func putScroll(_ rows: Range<Int>, by count: Int, _ distance: Int) {
    // What comes in is blank in the background's colour.
    if !writer.erasesPlainly { writer.setPen(.plain) }
    let isWhole = rows == 0..<screen.height
    if !isWhole {
      writer.put("\u{1B}[")
      if rows.lowerBound > 0 { writer.put(number: rows.lowerBound + 1) }
      if rows.upperBound < screen.height {
        writer.put(0x3B)
        writer.put(number: rows.upperBound)
      }
      writer.put(0x72)
    }
    writer.put(count: distance, count > 0 ? 0x53 : 0x54)
    if !isWhole {
      writer.put("\u{1B}[r")
      writer.state.x = 0
      writer.state.y = 0
    }
  }

  private mutating func putDifferences(from old: Grid) {
    let size = next.size
    guard !size.isEmpty else { return }
    // Another reference to the same cells: nothing is copied, as neither is changed meanwhile.
    let next = next
    next.cells.withUnsafeBufferPointer { new in
      old.cells.withUnsafeBufferPointer { old in
        let end = eraseBelow(old, new, size)
        for y in 0..<end {
          let columns = y * size.width..<(y + 1) * size.width
          let row = UnsafeBufferPointer(rebasing: new[columns])
          putRow(UnsafeBufferPointer(rebasing: old[columns]), row, y)
        }
      }
    }
  }

  /// Erases the blank rows at the end of the screen at once, if several of them show something.
  ///
  /// - Returns: The first row of those that need nothing more.
  private mutating func eraseBelow(
    _ old: UnsafeBufferPointer<Cell>, _ new: UnsafeBufferPointer<Cell>, _ size: Size
  ) -> Int {
    guard size == screen else { return size.height }
    var first = new.count
    while first > 0, new[first - 1] == .blank { first -= 1 }
    let row = (first + size.width - 1) / size.width
    guard row < size.height else { return size.height }
    var count = 0
    for y in row..<size.height {
      for index in y * size.width..<(y + 1) * size.width where old[index] != .blank {
        count += 1
        break
      }
    }
    guard count > 1 else { return size.height }
    if !writer.erasesPlainly { writer.setPen(.plain) }
    let blank = UnsafeBufferPointer(rebasing: new[row * size.width..<(row + 1) * size.width])
    writer.move(toX: 0, y: row, row: blank)
    writer.put("\u{1B}[J")
    return row
  }

  private mutating func putRow(_ old: UnsafeBufferPointer<Cell>, _ new: UnsafeBufferPointer<Cell>, _ y: Int) {
    let width = new.count
    var x = 0
    while x < width, old[x] == new[x] { x += 1 }
    guard x < width else { return }
    var last = width - 1
    while old[last] == new[last] { last -= 1 }
    // The right half goes with the left.
    if new[last].width == 2 { last += 1 }
    // Where the row's end begins that can be erased at once.
    var tail = width
    if width == screen.width, isErasable(new[width - 1]) {
      tail = width - 1
      while tail > 0, new[tail - 1] == new[width - 1] { tail -= 1 }
    }
    while x <= last {
      if new[x].width == 0 || old[x] == new[x] {
        x += 1
        continue
      }
      if x >= tail, last - x >= 3 {
        writer.move(toX: x, y: y, row: new)
        setErasingPen(new[x])
        writer.put("\u{1B}[K")
        return
      }
      let end = run(of: new[x], in: new, from: x, through: last)
      if isErasable(new[x]), erasePays(end - x, isLast: end > last) {
        writer.move(toX: x, y: y, row: new)
        setErasingPen(new[x])
        writer.put(count: end - x, 0x58)
        x = end
        continue
      }
      writer.move(toX: x, y: y, row: new)
      writer.put(new[x], columns: screen.width)
      x += Int(new[x].width)
      let count = end - x
      // Of other characters than those of ASCII, tmux repeats none.
      if writer.capabilities.repeats, x > 0, new[x - 1].glyph < 0x80, count > 3 + OutputWriter.digits(count) {
        writer.put(count: count, 0x62)
        x = end
        writer.state.x = end >= screen.width ? -1 : end
      }
    }
  }

  /// The column behind the equal cells from a column on.
  private func run(of cell: Cell, in row: UnsafeBufferPointer<Cell>, from x: Int, through last: Int) -> Int {
    guard cell.width == 1 else { return x + 1 }
    var end = x + 1
    while end <= last, row[end] == cell { end += 1 }
    return end
  }

  private func isErasable(_ cell: Cell) -> Bool {
    cell.glyph == Glyphs.space && cell.style.attributes.isDisjoint(with: .drawnOnSpaces) && cell.style.decoration == 0
      && (cell.style.background.isDefault || writer.capabilities.erasesWithColor)
  }

  /// Whether blanks are better erased than written: the cursor stays, and has to be moved if something follows.
  private func erasePays(_ count: Int, isLast: Bool) -> Bool {
    let erasing = 3 + OutputWriter.digits(count)
    let spaces = writer.capabilities.repeats ? min(count, 1 + erasing) : count
    return (isLast ? erasing : 2 * erasing) < spaces
  }

  /// Sets the background that what is erased gets.
  private mutating func setErasingPen(_ cell: Cell) {
    let background = cell.style.background.reduced(to: writer.capabilities.colors)
    if !writer.state.isPenKnown || writer.state.pen.background != background || writer.state.pen.decoration != 0 {
      writer.setPen(Style(background: background))
    }
  }
}
