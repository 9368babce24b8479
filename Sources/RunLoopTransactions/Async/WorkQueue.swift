// SPDX-License-Identifier: Apache-2.0

/// Work that is waiting for a worker, by descending priority and then in the order in which it was added.
///
/// An item may consist of several units of work, which are taken one at a time.
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

  /// The lines by descending priority, none of which is empty.
  private var lines: ContiguousArray<Line> = []
  /// The number of waiting units of work.
  private(set) var count = 0

  /// Adds an item after the others of its priority, unless `pieces` is 0.
  ///
  /// - Complexity: O(log n), where n is the number of priorities, or O(n) if the priority is new.
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

  /// Takes the next unit of work of the first item.
  ///
  /// - Complexity: O(1) amortised, or O(n) in the number of priorities when the last item of a priority is taken.
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

  mutating func takeAll() -> [Item] {
    defer { self = WorkQueue() }
    return lines.indices.flatMap { lines[$0].entries.takeAll().map(\.item) }
  }
}
