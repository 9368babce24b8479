// SPDX-License-Identifier: Apache-2.0

import RunLoopTransactions

/// The drawings of a list's rows that are not visible yet.
@MainActor
final class RowsAhead {
  private let updates: NodeUpdates
  private let group: AsyncTransactionGroup
  private let workers: WorkerPool
  private let content: @MainActor (Int) -> any NodeContent
  private var drawings: [Int: (content: any NodeContent, drawing: NodeDrawing)] = [:]
  private var width = 0
  weak var list: ListView?
  /// The visible rows and those around them.
  private var wanted = 0..<0
  private var visible = 0..<0
  /// The transaction in progress, with the indexes of its rows, or nil for rows that were removed from the list.
  private var underWay: (transaction: AsyncTransaction, rows: [Int?])?
  /// Whether rows were renumbered since the last layout.
  private var isRenumbered = false
  /// The number of times that rows were renumbered or discarded.
  private var changes = 0

  init(_ group: AsyncTransactionGroup, _ workers: WorkerPool, _ content: @escaping @MainActor (Int) -> any NodeContent)
  {
    updates = .of(group)
    self.group = group
    self.workers = workers
    self.content = content
  }

  /// Makes a row view show another row of the list.
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

  /// Requests a row from the model on the main thread, because the model may change before a worker runs.
  private func fetch(_ index: Int) -> any NodeContent {
    DisplayCallOut.note(closure: CalledContent(call: content))
    return content(index)
  }

  /// Discards all drawings, because they are out of date.
  func forget() {
    changes += 1
    wanted = 0..<0
    drawings.removeAll(keepingCapacity: true)
    underWay?.transaction.cancel()
    underWay = nil
  }

  /// Renumbers the drawings, and leaves it to the next layout to determine which rows are wanted.
  func renumber(_ number: (Int) -> Int?) {
    changes += 1
    let before = drawings
    drawings.removeAll(keepingCapacity: true)
    for (row, drawing) in before { if let new = number(row) { drawings[new] = drawing } }
    if let rows = underWay?.rows { underWay?.rows = rows.map { $0.flatMap(number) } }
    // Unless everything was discarded, rows that are no longer visible are kept.
    if !wanted.isEmpty { wanted = 0..<(list?.rowCount ?? 0) }
    isRenumbered = true
  }

  /// Draws the rows near the visible ones.
  func draw(around visible: Range<Int>, of count: Int, width: Int) {
    // The rows that have become visible are part of this layout.
    updates.drain()
    if self.width != width {
      self.width = width
      forget()
    }
    let reach = max(visible.count, 8)
    // Not done for every scrolled row, but when half of the advance drawings are used up or the list has jumped.
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

  /// Requests rows, or returns nil if user code changes them meanwhile, in which case the next layout continues.
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
    // The transaction was cancelled, or its rows have another width.
    guard let underWay, underWay.transaction === transaction else { return }
    self.underWay = nil
    // Rows that were removed from the list meanwhile are skipped.
    for (index, row) in underWay.rows.enumerated() {
      guard let row, wanted.contains(row), list?.visibleRow(row) == nil else { continue }
      if let drawing = results[index], drawing.grid.size == size(of: row) { drawings[row] = (contents[index], drawing) }
    }
    // If nothing was drawn, this would repeat indefinitely. The layout finds the missing drawings of renumbered rows.
    if !isRenumbered, results.contains(where: { $0 != nil }) { drawMissing() }
  }
}

/// A wrapper that identifies the user's closure in records.
private struct CalledContent {
  let call: @MainActor (Int) -> any NodeContent
}
