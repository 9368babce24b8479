// SPDX-License-Identifier: Apache-2.0

import RunLoopTransactions

/// The drawings of a list's rows that are not visible.
@MainActor
final class RowsAhead {
  private let updates: NodeUpdates
  private let group: AsyncTransactionGroup
  private let workers: WorkerPool
  private let content: @MainActor (Int) -> any NodeContent
  private var drawings: [Int: (content: any NodeContent, drawing: NodeDrawing)] = [:]
  private var width = 0
  weak var list: ListView?
  /// The rows that are wanted: those that are visible, and those around them.
  private var wanted = 0..<0
  private var visible = 0..<0
  /// What is being drawn, with the numbers of the rows; nil: the list has lost the row.
  private var underWay: (transaction: AsyncTransaction, rows: [Int?])?
  /// Whether rows have other numbers than at the last layout.
  private var isRenumbered = false
  /// How often rows got other numbers or were forgotten.
  private var changes = 0

  init(_ group: AsyncTransactionGroup, _ workers: WorkerPool, _ content: @escaping @MainActor (Int) -> any NodeContent)
  {
    updates = .of(group)
    self.group = group
    self.workers = workers
    self.content = content
  }

  /// Lets a row show another line than before.
  func show(_ index: Int, in row: NodeListRow) {
    if let before = row.node.shownDrawing, row.node.isUpToDate, wanted.contains(row.index), row.index != index,
      before.grid.size == size(of: row.index)
    {
      drawings[row.index] = (row.node.content, before)
    }
    let ready = drawings.removeValue(forKey: index)
    let size = size(of: index)
    let drawing = ready.flatMap { $0.drawing.grid.size == size ? $0.drawing : nil }
    row.node.reuse(for: ready?.content ?? fetch(index), drawing)
  }

  private func size(of row: Int) -> Size { Size(width: width, height: list?.height(ofRow: row) ?? 1) }

  /// Asks the user's model for a row, on the main thread: a worker would find the model as it is later.
  private func fetch(_ index: Int) -> any NodeContent {
    DisplayCallOut.note(closure: CalledContent(call: content))
    return content(index)
  }

  /// Forgets what was drawn: it is out of date.
  func forget() {
    changes += 1
    wanted = 0..<0
    drawings.removeAll(keepingCapacity: true)
    underWay?.transaction.cancel()
    underWay = nil
  }

  /// Keeps what was drawn under the rows' new numbers; what is wanted is found by the next layout.
  func renumber(_ number: (Int) -> Int?) {
    changes += 1
    let before = drawings
    drawings.removeAll(keepingCapacity: true)
    for (row, drawing) in before { if let new = number(row) { drawings[new] = drawing } }
    if let rows = underWay?.rows { underWay?.rows = rows.map { $0.flatMap(number) } }
    // Unless all was forgotten, rows that are no longer visible are kept.
    if !wanted.isEmpty { wanted = 0..<(list?.rowCount ?? 0) }
    isRenumbered = true
  }

  /// Has those rows drawn that are near the visible ones.
  func draw(around visible: Range<Int>, of count: Int, width: Int) {
    // The rows that have come into sight are part of this layout.
    updates.drain()
    if self.width != width {
      self.width = width
      forget()
    }
    let reach = max(visible.count, 8)
    // Not for every row that is scrolled, but when half of what was drawn ahead is used up, or the list has jumped.
    let needed = max(0, visible.lowerBound - reach / 2)..<min(count, visible.upperBound + reach / 2)
    self.visible = visible
    guard isRenumbered || needed.clamped(to: wanted) != needed || wanted.upperBound > count || drawings.isEmpty else {
      return
    }
    isRenumbered = false
    wanted = max(0, visible.lowerBound - reach)..<min(count, visible.upperBound + reach)
    if let underWay, !underWay.rows.contains(where: { $0.map(wanted.contains) ?? false }) {
      underWay.transaction.cancel()
      self.underWay = nil
    }
    drawMissing()
  }

  /// Asks for rows; nil if the user's code has changed them meanwhile: the layout that follows finds what is missing.
  private func contents(of rows: [Int]) -> [any NodeContent]? {
    let before = changes
    var contents: [any NodeContent] = []
    for row in rows {
      contents.append(fetch(row))
      guard changes == before else { return nil }
    }
    return contents
  }

  private func drawMissing() {
    guard underWay == nil, width > 0, width <= DisplayNode.maximumContent else { return }
    for index in drawings.keys where !wanted.contains(index) { drawings[index] = nil }
    let missing = wanted.filter { !visible.contains($0) && drawings[$0] == nil }
    guard !missing.isEmpty else { return }
    guard let contents = contents(of: missing) else { return }
    let sizes = missing.map { size(of: $0) }
    let transaction = AsyncTransaction(group: group, workers: workers)
    transaction.add(count: missing.count) { number, cancellation in
      NodeDrawing.make(contents[number], size: sizes[number], placesSubnodes: false, cancellation)
    } completion: { [weak self] results in
      MainActor.assumeIsolated { self?.take(results, contents, transaction) }
    }
    underWay = (transaction, missing)
    updates.commit(transaction)
  }

  private func take(
    _ results: ContiguousArray<NodeDrawing?>, _ contents: [any NodeContent], _ transaction: AsyncTransaction
  ) {
    // It was cancelled, or is of another size.
    guard let underWay, underWay.transaction === transaction else { return }
    self.underWay = nil
    // Without those that the list has lost meanwhile.
    for (index, row) in underWay.rows.enumerated() {
      guard let row, wanted.contains(row), list?.visibleRow(row) == nil else { continue }
      if let drawing = results[index], drawing.grid.size == size(of: row) { drawings[row] = (contents[index], drawing) }
    }
    // A drawing without a result would be tried indefinitely. The layout finds what is missing of renumbered rows.
    if !isRenumbered, results.contains(where: { $0 != nil }) { drawMissing() }
  }
}

/// What names the user's closure in records.
private struct CalledContent {
  let call: @MainActor (Int) -> any NodeContent
}
