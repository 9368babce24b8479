// SPDX-License-Identifier: Apache-2.0

import RunLoopDisplay

/// The screen of `runloop top`, with the loops above the call-outs of the selected loop.
@MainActor
final class TopScreen: Window {
  /// A sortable column of the loops.
  enum Column: Int, CaseIterable {
    case thread
    case name
    case state
    case mode
    case rate
    case busy
    case queue
    case delay
    case callOut

    var title: String {
      switch self {
      case .thread: "TID"
      case .name: "THREAD"
      case .state: "STATE"
      case .mode: "MODE"
      case .rate: "CALLS/S"
      case .busy: "BUSY"
      case .queue: "QUEUE"
      case .delay: "DELAY99"
      case .callOut: "CALL-OUT"
      }
    }

    /// The columns that a narrow screen omits, in this order.
    static let dispensable: [Column] = [.mode, .rate, .thread, .delay, .queue, .callOut]

    /// The minimum width of a column whose text can be shortened.
    var least: Int? { self == .name ? 14 : self == .callOut ? 36 : nil }

    var isNumber: Bool { [.thread, .rate, .busy, .queue, .delay].contains(self) }
  }

  private static let gap = 2
  let title = Label(style: Style(attributes: .bold))
  private let heads: [Button]
  let list: ListView
  let detailTitle = Label(style: Style(attributes: .bold))
  let detailHead = Label(style: Style(attributes: .dim))
  let details: ListView
  let help = Label("q quit   ? help   ↑ ↓ select   s sort   p pause", style: .reversed)

  private(set) var loops: [TopReader.Loop] = []
  private var lines: [TopReader.Line] = []
  private(set) var order = Column.state
  private var needed: [Int] = []
  /// The columns that fit, with their widths.
  private var columns: [(column: Column, width: Int)] = []
  /// Whether the lower table shows the help text.
  private(set) var isExplaining = false
  /// Whether the user has selected a loop; until then, a hanging loop is selected.
  private var hasChosen = false
  private var isSelecting = false
  /// The selected loop, which stays selected when the order changes.
  private(set) var selectedSlot: Int?
  var whenKey: ((KeyEvent) -> Bool)?
  var whenSelected: (() -> Void)?

  init() {
    // The provider is called during layout, when the screen exists.
    let screen = Weak()
    list = ListView { index, reused in
      let row = reused as? TopRow ?? TopRow()
      screen.value?.fill(row, index)
      return row
    }
    details = ListView { index, reused in
      let row = reused ?? ListRow()
      row.text = screen.value?.text(ofLine: index) ?? ""
      return row
    }
    heads = Column.allCases.map { column in
      Button(column.title) { screen.value?.sort(by: column) }
    }
    super.init()
    screen.value = self
    for view in [title, list, detailTitle, detailHead, details, help] { addSubview(view) }
    for head in heads { addSubview(head) }
    list.selectionDidChange = { [unowned self] row in
      if !isSelecting { hasChosen = true }
      selectedSlot = row.map { loops[$0].slot }
      whenSelected?()
    }
    list.becomeFirstResponder()
  }

  private final class Weak {
    weak var value: TopScreen?
  }

  override func layoutSubviews() {
    let size = bounds.size
    let upper = max(3, min(loops.count + 3, size.height * 3 / 5))
    title.frame = Rect(x: 0, y: 0, width: size.width, height: 1)
    chooseColumns()
    list.frame = Rect(x: 0, y: 2, width: size.width, height: max(0, upper - 2))
    detailTitle.frame = Rect(x: 0, y: upper, width: size.width, height: 1)
    detailHead.frame = Rect(x: 0, y: upper + 1, width: size.width, height: 1)
    details.frame = Rect(x: 0, y: upper + 2, width: size.width, height: max(0, size.height - upper - 3))
    help.frame = Rect(x: 0, y: max(0, size.height - 1), width: size.width, height: 1)
  }

  /// Chooses the columns that fit, and redraws the rows if they have changed.
  private func chooseColumns() {
    guard !needed.isEmpty else { return }
    let chosen = TopScreen.columns(of: bounds.size.width, needed)
    guard chosen.map(\.column) != columns.map(\.column) || chosen.map(\.width) != columns.map(\.width) else { return }
    columns = chosen
    layOutHeads()
    for row in list.visibleRows { (list.visibleRow(row) as? TopRow).map { fill($0, row) } }
    for row in details.visibleRows { details.visibleRow(row)?.text = text(ofLine: row) }
  }

  /// Returns the columns that fit into a width, with their widths.
  static func columns(of width: Int, _ needed: [Int]) -> [(column: Column, width: Int)] {
    var chosen = Column.allCases
    func least(_ column: Column) -> Int { min(needed[column.rawValue], column.least ?? .max) }
    func room() -> Int { width - chosen.reduce(0) { $0 + least($1) + gap } + gap }
    for column in Column.dispensable where room() < 0 { chosen.removeAll { $0 == column } }
    var rest = max(0, room())
    var widths = chosen.map(least)
    for (index, column) in chosen.enumerated().reversed() where column.least != nil {
      let more = min(rest, needed[column.rawValue] - widths[index])
      widths[index] += more
      rest -= more
    }
    return Array(zip(chosen, widths))
  }

  private func layOutHeads() {
    var x = 0
    for head in heads { head.frame = Rect(x: 0, y: 1, width: 0, height: 0) }
    for (column, width) in columns {
      let title = column.title
      let start = column.isNumber ? max(0, width - title.count) : 0
      heads[column.rawValue].frame = Rect(x: x + start, y: 1, width: min(title.count, width), height: 1)
      x += width + Self.gap
    }
  }

  /// Shows or hides the help text in place of the lower table.
  func explain(_ explains: Bool) {
    isExplaining = explains
    let shown = lines
    lines = []
    details.rowCount = 0
    if explains { details.rowCount = TopScreen.explanation.count } else { show(shown) }
    lines = shown
    for row in details.visibleRows { details.visibleRow(row)?.text = text(ofLine: row) }
  }

  private static let explanation = [
    "q ends; p holds still; ↑ ↓ or a click selects a loop; s or a click on a title sorts; ? goes back",
    "STATE    HUNG: in one call-out for 250 ms or longer; > that it had begun before",
    "CALLS/S  call-outs in the last second", "BUSY     the part of the last second in which it did not sleep",
    "QUEUE    blocks and jobs that wait", "DELAY99  what 99 of 100 of them waited at most, in the last 10 s",
  ]

  /// Shows the current state of the loops, redrawing only what has changed.
  func show(_ next: [TopReader.Loop]) {
    var sorted = next
    sorted.sort { TopScreen.stands($0, before: $1, by: order) }
    let isChanged = sorted != loops
    guard isChanged else { return }
    let hadLoops = loops.count
    loops = sorted
    let now = Column.allCases.map { column in
      max(column.title.count, loops.map { TopScreen.cell($0, column).count }.max() ?? 0)
    }
    // Columns only grow, to keep the layout stable. The last one may shrink, because nothing follows it.
    needed = needed.isEmpty ? now : zip(needed, now).map { max($0, $1) }
    needed[Column.callOut.rawValue] = now[Column.callOut.rawValue]
    list.rowCount = loops.count
    selectRow()
    if hadLoops != loops.count { setNeedsLayout() }
    chooseColumns()
    for row in list.visibleRows { (list.visibleRow(row) as? TopRow).map { fill($0, row) } }
  }

  /// Keeps the selection, or selects a hanging loop or the first one.
  private func selectRow() {
    isSelecting = true
    defer { isSelecting = false }
    let selected = selectedSlot.flatMap { slot in loops.firstIndex { $0.slot == slot } }
    let hung = hasChosen || selected.map { loops[$0].isHung } ?? false ? nil : loops.firstIndex(where: \.isHung)
    guard let row = hung ?? selected ?? (loops.isEmpty ? nil : 0) else { return }
    if list.selectedRow != row { list.selectedRow = row }
    selectedSlot = loops[row].slot
  }

  /// Shows the call-outs of the selected loop.
  func show(_ next: [TopReader.Line]) {
    guard next != lines else { return }
    lines = next
    guard !isExplaining else { return }
    details.rowCount = lines.count
    for row in details.visibleRows { details.visibleRow(row)?.text = text(ofLine: row) }
  }

  func sort(by column: Column) {
    order = column
    let now = loops
    loops = []
    show(now)
  }

  /// Sorts by the next column.
  func sortOtherwise() { sort(by: Column(rawValue: (order.rawValue + 1) % Column.allCases.count) ?? .thread) }

  override func keyPressed(_ key: KeyEvent) {
    if !(whenKey?(key) ?? false) { super.keyPressed(key) }
  }
}

// The text of rows.
extension TopScreen {
  private static func stands(_ left: TopReader.Loop, before right: TopReader.Loop, by column: Column) -> Bool {
    switch column {
    case .thread: left.thread < right.thread
    case .name: (left.name, left.thread) < (right.name, right.thread)
    case .state: (rank(left), left.thread) < (rank(right), right.thread)
    case .mode: (left.mode, left.thread) < (right.mode, right.thread)
    case .rate: (-left.rate, left.thread) < (-right.rate, right.thread)
    case .busy: (-left.busy, left.thread) < (-right.busy, right.thread)
    case .queue: (-left.queued, left.thread) < (-right.queued, right.thread)
    case .delay: (-(left.delay ?? -1), left.thread) < (-(right.delay ?? -1), right.thread)
    case .callOut: (left.callOut, left.thread) < (right.callOut, right.thread)
    }
  }

  /// Hanging loops come first, followed by busy ones.
  private static func rank(_ loop: TopReader.Loop) -> Int {
    loop.isHung ? 0 : ["busy", "stopped", "idle"].firstIndex(of: loop.state).map { $0 + 1 } ?? 4
  }

  private static func cell(_ loop: TopReader.Loop, _ column: Column) -> String {
    switch column {
    case .thread: "\(loop.thread)"
    case .name: ForeignText.shown(loop.name)
    case .state: loop.state
    case .mode: ForeignText.shown(loop.mode)
    case .rate: Text.grouped(loop.rate)
    case .busy: "\(loop.busy) %"
    case .queue: Text.grouped(loop.queued)
    case .delay: loop.delay.map { Text.duration($0) } ?? "–"
    case .callOut: ForeignText.shown(loop.callOut)
    }
  }

  fileprivate func fill(_ row: TopRow, _ index: Int) {
    guard index < loops.count else { return row.text = "" }
    let loop = loops[index]
    row.text = columns.map { column, width in
      let cell = Text.shortened(TopScreen.cell(loop, column), width)
      let space = String(repeating: " ", count: max(0, width - cell.count))
      return column.isNumber ? space + cell : cell + space
    }.joined(separator: String(repeating: " ", count: Self.gap))
    let busy = loop.state == "busy" ? Style(foreground: .green) : .plain
    row.style = loop.isHung ? Style(foreground: .red, attributes: .bold) : busy
  }

  fileprivate func text(ofLine index: Int) -> String {
    if isExplaining { return index < TopScreen.explanation.count ? TopScreen.explanation[index] : "" }
    guard index < lines.count else { return "" }
    let line = lines[index]
    return TopScreen.line(
      [Text.grouped(line.count), Text.duration(line.total), Text.duration(line.longest)], line.kind,
      ForeignText.shown(line.code), bounds.size.width)
  }

  /// Formats a line of the lower table, omitting columns on a narrow screen.
  static func line(_ numbers: [String], _ kind: String, _ code: String, _ width: Int) -> String {
    let isNarrow = width < 60
    let kept = isNarrow ? Array(numbers.prefix(2)) : numbers
    let text = kept.map { String(repeating: " ", count: max(0, 8 - $0.count)) + $0 }.joined(separator: "  ")
    let space = String(repeating: " ", count: max(0, 9 - kind.count))
    let start = text + "  " + (isNarrow ? "" : "\(kind)\(space)  ")
    return start + Text.shortened(code, max(0, width - start.count))
  }
}

/// A row that shows a loop.
final class TopRow: ListRow {}
