// SPDX-License-Identifier: Apache-2.0

/// An encoder that turns frames into the bytes that a terminal needs to show the differences from the previous frame.
///
/// This value is not isolated. After the first frame of a size, further frames of that size need no allocation unless
/// they produce more bytes than any frame before.
package struct FrameEncoder: Sendable {
  private var writer: OutputWriter
  /// The cells that the terminal shows.
  private var shown = Grid(size: .zero)
  /// The cells that the terminal should show.
  private var next = Grid(size: .zero)
  /// The cells that the terminal would show after a scroll.
  private var scrolled = Grid(size: .zero)
  /// Whether the contents of the terminal are unknown.
  private var isUnknown = true
  /// The number of columns and rows of the terminal.
  private var screen: Size

  package init(size: Size, capabilities: TerminalCapabilities) {
    screen = size
    writer = OutputWriter(capabilities: capabilities)
  }

  package var capabilities: TerminalCapabilities {
    get { writer.capabilities }
    set {
      // Clusters and colours that were written for other capabilities look wrong.
      let isOutOfDate =
        newValue.colors != capabilities.colors
        || newValue.decorates != capabilities.decorates && shown.cells.contains { $0.style.decoration != 0 }
        || newValue.wholeClusters != capabilities.wholeClusters
          && shown.cells.contains { $0.glyph >= Glyphs.firstCluster }
      if isOutOfDate { repaint() }
      writer.capabilities = newValue
    }
  }

  /// The cursor after each frame, or nil if it is hidden.
  package var cursor: TextCursor?
  /// The shape that was set for the terminal's cursor.
  private var shownShape: TextCursor.Shape?

  /// Appends the sequence that moves the cursor to its position, unless it is already there.
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

  /// Whether frames are shown below the current contents, starting at the saved cursor position.
  package var isInline: Bool {
    get { writer.isInline }
    set { writer.isInline = newValue }
  }

  /// The number of rows that are available for frames.
  var rows: Int { screen.height }

  /// Whether the next frame is written in full.
  package var isRepainting: Bool { isUnknown }

  /// Causes the next frame to be written in full.
  package mutating func repaint() { isUnknown = true }

  /// Records that the terminal was opened.
  ///
  /// Its cursor is hidden and, for inline frames, in the first cell.
  package mutating func cursorIsHidden() {
    shownShape = nil
    writer.state.x = 0
    writer.state.y = 0
  }

  /// Appends the sequence that saves the position of the first cell, relative to the cursor.
  ///
  /// When a terminal is resized, it moves the cursor together with its lines, but not the saved position.
  package mutating func savePlace(into output: inout ContiguousArray<UInt8>) {
    swap(&writer.bytes, &output)
    defer { swap(&writer.bytes, &output) }
    writer.putLink("", 0)
    writer.put("\u{1B}[m")
    if writer.state.y > 0 { writer.put(count: writer.state.y, 0x41) }
    writer.put("\r\u{1B}7")
    writer.state = OutputWriter.State(x: 0, y: 0, pen: .plain, isPenKnown: true)
  }

  /// Resizes the screen, whose contents are then unknown.
  package mutating func resize(to size: Size) {
    screen = size
    repaint()
  }

  /// Appends the bytes that show a frame.
  ///
  /// Cells of the grid beyond the terminal's size are ignored.
  ///
  /// - Returns: The number of bytes, or 0 if the terminal already shows the frame.
  /// - Complexity: O(n), where n is the number of cells.
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
    // A scroll alone costs about this many bytes.
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
      // Makes room for all rows, by scrolling if necessary, and saves the position of the first row. Some terminals
      // restore the wrapping mode together with the position.
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

  /// Encodes a frame as scrolls and the remaining differences, and keeps that if it is shorter.
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
    // Rows that scroll in are blank, with the background colour.
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
    // A second reference to the same cells, which does not copy them because neither is modified meanwhile.
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

  /// Erases the blank rows at the end of the screen together, if several of them are not blank yet.
  ///
  /// - Returns: The first row that needs no further output.
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
    // The right half is written with the left.
    if new[last].width == 2 { last += 1 }
    // The start of the row's end that can be erased together.
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
      // tmux repeats only ASCII characters.
      if writer.capabilities.repeats, x > 0, new[x - 1].glyph < 0x80, count > 3 + OutputWriter.digits(count) {
        writer.put(count: count, 0x62)
        x = end
        writer.state.x = end >= screen.width ? -1 : end
      }
    }
  }

  /// Returns the column after the run of equal cells that starts at a column.
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

  /// Whether erasing blanks is shorter than writing them, considering that the cursor must then be moved.
  private func erasePays(_ count: Int, isLast: Bool) -> Bool {
    let erasing = 3 + OutputWriter.digits(count)
    let spaces = writer.capabilities.repeats ? min(count, 1 + erasing) : count
    return (isLast ? erasing : 2 * erasing) < spaces
  }

  /// Sets the background colour for erasing.
  private mutating func setErasingPen(_ cell: Cell) {
    let background = cell.style.background.reduced(to: writer.capabilities.colors)
    if !writer.state.isPenKnown || writer.state.pen.background != background || writer.state.pen.decoration != 0 {
      writer.setPen(Style(background: background))
    }
  }
}
