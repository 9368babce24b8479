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
  private var underWay: (transaction: AsyncTransaction, rows: Range<Int>)?

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
    wanted = 0..<0
    drawings.removeAll(keepingCapacity: true)
    underWay?.transaction.cancel()
    underWay = nil
  }

  /// Forgets the rows that the list no longer has.
  ///
  /// A batch may be complete before the next layout, and must not ask the model for a row past its end.
  func limit(to count: Int) {
    wanted = wanted.clamped(to: 0..<count)
    for index in drawings.keys where index >= count { drawings[index] = nil }
    if let rows = underWay?.rows { underWay?.rows = rows.clamped(to: 0..<count) }
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
    guard needed.clamped(to: wanted) != needed || wanted.upperBound > count || drawings.isEmpty else { return }
    wanted = max(0, visible.lowerBound - reach)..<min(count, visible.upperBound + reach)
    if let underWay, !underWay.rows.overlaps(wanted) {
      underWay.transaction.cancel()
      self.underWay = nil
    }
    drawMissing()
  }

  private func drawMissing() {
    guard underWay == nil, width > 0, width <= DisplayNode.maximumContent else { return }
    for index in drawings.keys where !wanted.contains(index) { drawings[index] = nil }
    let missing = wanted.filter { !visible.contains($0) && drawings[$0] == nil }
    guard let first = missing.first, let last = missing.last else { return }
    let contents = missing.map { fetch($0) }
    let sizes = missing.map { size(of: $0) }
    let transaction = AsyncTransaction(group: group, workers: workers)
    transaction.add(count: missing.count) { number, cancellation in
      NodeDrawing.make(contents[number], size: sizes[number], placesSubnodes: false, cancellation)
    } completion: { [weak self] results in
      MainActor.assumeIsolated { self?.take(results, missing, contents, transaction) }
    }
    underWay = (transaction, first..<last + 1)
    updates.commit(transaction)
  }

  private func take(
    _ results: ContiguousArray<NodeDrawing?>, _ rows: [Int], _ contents: [any NodeContent],
    _ transaction: AsyncTransaction
  ) {
    // It was cancelled, or is of another size.
    guard let underWay, underWay.transaction === transaction else { return }
    self.underWay = nil
    // Without those that the list has lost meanwhile, even if it has as many rows again.
    let kept = underWay.rows.clamped(to: wanted)
    for (index, row) in rows.enumerated() where kept.contains(row) && !visible.contains(row) {
      if let drawing = results[index], drawing.grid.size == size(of: row) { drawings[row] = (contents[index], drawing) }
    }
    // A drawing without a result would be tried indefinitely.
    if results.contains(where: { $0 != nil }) { drawMissing() }
  }
}

/// What names the user's closure in records.
private struct CalledContent {
  let call: @MainActor (Int) -> any NodeContent
}
