// SPDX-License-Identifier: Apache-2.0

public import RunLoopTransactions

/// A list whose rows are drawn by nodes, off the main thread.
///
/// As many rows as are visible are drawn ahead on either side in one transaction, so that they are ready when they
/// scroll into view. Other rows, as after a jump, are drawn like any node: by the main thread while it has time, and
/// otherwise by a worker while the ``DisplayNode/placeholder`` is visible.
///
/// ```Swift
/// let list = NodeListView { index in TextContent("row \(index)") }
/// list.rowCount = 1_000_000
/// ```
@MainActor
open class NodeListView: ListView {
  private let rowsAhead: RowsAhead

  /// Creates an empty list.
  ///
  /// - Parameters:
  ///   - frame: The frame in its superview.
  ///   - group: The group of the main loop.
  ///   - workers: The pool whose threads draw the rows.
  ///   - placeholder: The placeholder of rows that have not been drawn.
  ///   - content: A closure that returns the content of a row, called on the main thread once for each row near the
  ///     visible ones. It reads the model, and leaves the work to the content, which draws on any thread.
  public init(
    frame: Rect = .zero, group: AsyncTransactionGroup = .main, workers: WorkerPool = .shared,
    placeholder: NodePlaceholder? = nil, content: @escaping @MainActor (Int) -> any NodeContent
  ) {
    let rowsAhead = RowsAhead(group, workers, content)
    self.rowsAhead = rowsAhead
    super.init(frame: frame) { index, reused in
      let row = reused as? NodeListRow ?? NodeListRow(group, workers, placeholder)
      rowsAhead.show(index, in: row)
      return row
    }
    rowsAhead.list = self
  }

  /// Requests the contents of all rows again, in the layout of this turn.
  override public func reload() {
    rowsAhead.forget()
    super.reload()
  }

  /// Creates the rows that have become visible, and draws those near them.
  override open func layoutSubviews() {
    super.layoutSubviews()
    // The rows keep their old numbers until they are provided again.
    guard !needsReload else { return }
    rowsAhead.draw(around: visibleRows, of: rowCount, width: rowWidth)
  }

  override func rowsDidChange(_ number: ((Int) -> Int?)?) {
    if let number { rowsAhead.renumber(number) } else { rowsAhead.forget() }
  }

  override open func didMoveToWindow() {
    super.didMoveToWindow()
    if window == nil { rowsAhead.forget() }
  }
}

/// A row of a ``NodeListView``, whose contents are those of a node.
@MainActor
public final class NodeListRow: ListRow {
  /// The node that draws the row.
  public let node: DisplayNode

  init(_ group: AsyncTransactionGroup, _ workers: WorkerPool, _ placeholder: NodePlaceholder?) {
    node = DisplayNode(group: group, workers: workers)
    node.placeholder = placeholder
    super.init()
    addSubview(node.view)
  }

  override public var drawsContents: Bool { false }

  override public func layoutSubviews() { node.view.frame = bounds }

  override public func selectionDidChange() {
    super.selectionDidChange()
    node.view.isReversed = isSelected
  }
}
