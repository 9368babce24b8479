// SPDX-License-Identifier: Apache-2.0

import RunLoopDisplay

/// The screen of `runloop top`: the loops, and below them what the selected one has called.
@MainActor
final class TopScreen: Window {
  /// A column of the loops, by which they can be sorted.
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

    var isNumber: Bool { [.thread, .rate, .busy, .queue, .delay].contains(self) }
  }

  private static let gap = 2
  let title = Label(style: Style(attributes: .bold))
  private let heads: [Button]
  let list: ListView
  let detailTitle = Label(style: Style(attributes: .bold))
  let detailHead = Label(style: Style(attributes: .dim))
  let details: ListView
  let help = Label("q quit   ↑ ↓ or a click: select   s or a click on a title: sort   p: pause", style: .reversed)

  private(set) var loops: [TopReader.Loop] = []
  private var lines: [TopReader.Line] = []
  private(set) var order = Column.thread
  private var widths: [Int] = []
  /// The selected loop, which keeps its selection when the order changes.
  private(set) var selectedSlot: Int?
  var whenKey: ((KeyEvent) -> Bool)?
  var whenSelected: (() -> Void)?

  init() {
    // The provider is called in a layout, when the screen is there.
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
    layOutHeads()
    list.frame = Rect(x: 0, y: 2, width: size.width, height: max(0, upper - 2))
    detailTitle.frame = Rect(x: 0, y: upper, width: size.width, height: 1)
    detailHead.frame = Rect(x: 0, y: upper + 1, width: size.width, height: 1)
    details.frame = Rect(x: 0, y: upper + 2, width: size.width, height: max(0, size.height - upper - 3))
    help.frame = Rect(x: 0, y: max(0, size.height - 1), width: size.width, height: 1)
  }

  private func layOutHeads() {
    var x = 0
    for (column, head) in zip(Column.allCases, heads) {
      let width = widths.isEmpty ? column.title.count : widths[column.rawValue]
      let title = column.title
      let start = column.isNumber ? max(0, width - title.count) : 0
      head.frame = Rect(x: x + start, y: 1, width: title.count, height: 1)
      x += width + Self.gap
    }
  }

  /// Shows the loops as they are now; what has not changed is not drawn.
  func show(_ next: [TopReader.Loop]) {
    var sorted = next
    sorted.sort { TopScreen.stands($0, before: $1, by: order) }
    let isChanged = sorted != loops
    guard isChanged else { return }
    let hadLoops = loops.count
    loops = sorted
    let needed = Column.allCases.map { column in
      max(column.title.count, loops.map { TopScreen.cell($0, column).count }.max() ?? 0)
    }
    // Columns only grow: so they stand still.
    widths = widths.isEmpty ? needed : zip(widths, needed).map { max($0, $1) }
    list.rowCount = loops.count
    if let selectedSlot, let row = loops.firstIndex(where: { $0.slot == selectedSlot }) {
      if list.selectedRow != row { list.selectedRow = row }
    } else if !loops.isEmpty {
      list.selectedRow = 0
      selectedSlot = loops[0].slot
    }
    if hadLoops != loops.count { setNeedsLayout() }
    layOutHeads()
    for row in list.visibleRows { (list.visibleRow(row) as? TopRow).map { fill($0, row) } }
  }

  /// Shows what the selected loop has called.
  func show(_ next: [TopReader.Line]) {
    guard next != lines else { return }
    lines = next
    details.rowCount = lines.count
    for row in details.visibleRows { details.visibleRow(row)?.text = text(ofLine: row) }
  }

  func sort(by column: Column) {
    order = column
    let now = loops
    loops = []
    show(now)
  }

  /// By the next column.
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
    case .state: (left.isHung ? 0 : 1, left.state, left.thread) < (right.isHung ? 0 : 1, right.state, right.thread)
    case .mode: (left.mode, left.thread) < (right.mode, right.thread)
    case .rate: (-left.rate, left.thread) < (-right.rate, right.thread)
    case .busy: (-left.busy, left.thread) < (-right.busy, right.thread)
    case .queue: (-left.queued, left.thread) < (-right.queued, right.thread)
    case .delay: (-(left.delay ?? -1), left.thread) < (-(right.delay ?? -1), right.thread)
    case .callOut: (left.callOut, left.thread) < (right.callOut, right.thread)
    }
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
    row.text = Column.allCases.map { column in
      let cell = TopScreen.cell(loop, column)
      let width = column == .callOut || widths.isEmpty ? cell.count : widths[column.rawValue]
      let space = String(repeating: " ", count: max(0, width - cell.count))
      return column.isNumber ? space + cell : cell + space
    }.joined(separator: String(repeating: " ", count: Self.gap))
    let busy = loop.state == "busy" ? Style(foreground: .green) : .plain
    row.style = loop.isHung ? Style(foreground: .red, attributes: .bold) : busy
  }

  fileprivate func text(ofLine index: Int) -> String {
    guard index < lines.count else { return "" }
    let line = lines[index]
    return TopScreen.columns(
      Text.grouped(line.count), Text.duration(line.total), Text.duration(line.longest), line.kind,
      ForeignText.shown(line.code))
  }

  static func columns(_ count: String, _ total: String, _ longest: String, _ kind: String, _ code: String) -> String {
    func right(_ text: String, _ width: Int) -> String {
      String(repeating: " ", count: max(0, width - text.count)) + text
    }
    let space = String(repeating: " ", count: max(0, 10 - kind.count))
    return "\(right(count, 9))  \(right(total, 9))  \(right(longest, 9))  \(kind)\(space)  \(code)"
  }
}

/// A row that shows a loop.
final class TopRow: ListRow {}
