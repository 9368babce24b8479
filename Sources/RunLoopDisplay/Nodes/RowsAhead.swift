// SPDX-License-Identifier: Apache-2.0

import RunLoopTransactions

/// The drawings of a list's rows that are not visible.
@MainActor
final class RowsAhead {
  private let updates: NodeUpdates
  private let group: AsyncTransactionGroup
  private let workers: WorkerPool
  private let content: @Sendable (Int) -> any NodeContent
  private var drawings: [Int: NodeDrawing] = [:]
  private var size = Size.zero
  /// The rows that are wanted: those that are visible, and those around them.
  private var wanted = 0..<0
  private var visible = 0..<0
  private var underWay: (transaction: AsyncTransaction, rows: Range<Int>)?

  init(_ group: AsyncTransactionGroup, _ workers: WorkerPool, _ content: @escaping @Sendable (Int) -> any NodeContent) {
    updates = .of(group)
    self.group = group
    self.workers = workers
    self.content = content
  }

  /// Lets a row show another line than before.
  func show(_ index: Int, in row: NodeListRow) {
    if let before = row.node.shownDrawing, row.node.isUpToDate, before.grid.size == size, wanted.contains(row.index),
      row.index != index
    {
      drawings[row.index] = before
    }
    let drawing = drawings.removeValue(forKey: index)
    row.node.reuse(for: RowContent(index: index, content: content), drawing?.grid.size == size ? drawing : nil)
  }

  /// Forgets what was drawn: it is out of date.
  func forget() {
    wanted = 0..<0
    drawings.removeAll(keepingCapacity: true)
    underWay?.transaction.cancel()
    underWay = nil
  }

  /// Has those rows drawn that are near the visible ones.
  func draw(around visible: Range<Int>, of count: Int, width: Int) {
    // The rows that have come into sight are part of this layout.
    updates.drain()
    let size = Size(width: width, height: 1)
    if self.size != size {
      self.size = size
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
    guard underWay == nil, !size.isEmpty, size.width <= DisplayNode.maximumContent else { return }
    for index in drawings.keys where !wanted.contains(index) { drawings[index] = nil }
    let missing = wanted.filter { !visible.contains($0) && drawings[$0] == nil }
    guard let first = missing.first, let last = missing.last else { return }
    let transaction = AsyncTransaction(group: group, workers: workers)
    transaction.add(count: missing.count) { [content, size] number, cancellation in
      NodeDrawing.make(
        RowContent(index: missing[number], content: content), size: size, placesSubnodes: false, cancellation)
    } completion: { [weak self] results in
      MainActor.assumeIsolated { self?.take(results, missing, transaction) }
    }
    underWay = (transaction, first..<last + 1)
    updates.commit(transaction)
  }

  private func take(_ results: ContiguousArray<NodeDrawing?>, _ rows: [Int], _ transaction: AsyncTransaction) {
    // It was cancelled, or is of another size.
    guard underWay?.transaction === transaction else { return }
    underWay = nil
    for (row, drawing) in zip(rows, results) where wanted.contains(row) && !visible.contains(row) {
      if let drawing, drawing.grid.size == size { drawings[row] = drawing }
    }
    // A drawing without a result would be tried indefinitely.
    if results.contains(where: { $0 != nil }) { drawMissing() }
  }
}

/// The content of a row, which is asked for when the row is drawn.
private struct RowContent: NodeContent {
  let index: Int
  let content: @Sendable (Int) -> any NodeContent

  func layout(_ size: SizeRange) -> Layout { content(index).layout(size) }

  func draw(into canvas: inout Canvas, _ cancellation: Cancellation) {
    content(index).draw(into: &canvas, cancellation)
  }
}
