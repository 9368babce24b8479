// SPDX-License-Identifier: Apache-2.0

/// Work that waits for a worker: the largest priority first, and what came first among equals.
///
/// An item may make many pieces, which are taken one by one.
struct WorkQueue<Item> {
  private struct Entry {
    let item: Item
    let pieceCount: Int
    var nextPiece = 0
  }

  /// The entries of one priority.
  private struct Line {
    let priority: Int
    var entries = TakeQueue<Entry>()
  }

  /// By falling priority; none is empty.
  private var lines: ContiguousArray<Line> = []
  /// How many pieces wait.
  private(set) var count = 0

  /// Adds an item behind those of its priority; one without pieces is not added.
  ///
  /// - Complexity: O(log n) in the priorities, and O(n) for one that is not there.
  mutating func append(_ item: Item, priority: Int, pieces: Int) {
    guard pieces > 0 else { return }
    count += pieces
    var (low, high) = (0, lines.count)
    while low < high {
      let middle = (low + high) / 2
      if lines[middle].priority > priority { low = middle + 1 } else { high = middle }
    }
    if low == lines.count || lines[low].priority != priority { lines.insert(Line(priority: priority), at: low) }
    lines[low].entries.append(Entry(item: item, pieceCount: pieces))
  }

  /// Takes a piece of the first item.
  ///
  /// - Complexity: O(1) amortised, and O(n) in the priorities when the last item of one is taken.
  mutating func takeFirst() -> (item: Item, piece: Int)? {
    guard !lines.isEmpty, let entry = lines[0].entries.first else { return nil }
    count -= 1
    if entry.nextPiece + 1 < entry.pieceCount {
      lines[0].entries.first?.nextPiece += 1
    } else {
      _ = lines[0].entries.takeFirst()
      if lines[0].entries.isEmpty { lines.removeFirst() }
    }
    return (entry.item, entry.nextPiece)
  }

  /// Takes every item, in order.
  mutating func takeAll() -> [Item] {
    defer { self = WorkQueue() }
    return lines.indices.flatMap { lines[$0].entries.takeAll().map(\.item) }
  }
}
