// SPDX-License-Identifier: Apache-2.0

/// The blocks queued for one mode, or for the common modes, in posting order (used only on the loop's thread).
struct BlockQueue: ~Copyable {
  enum Work {
    case single(Block)
    case shared(SharedBlock)
    case job(LoopJob)

    var isTaken: Bool {
      switch self {
      case .single, .job: false
      case .shared(let shared): shared.block == nil
      }
    }

    /// Takes the work to be called, unless another mode has run it.
    func take() -> Work? {
      switch self {
      case .single, .job: self
      case .shared(let shared): shared.take().map { .single($0) }
      }
    }
  }

  struct Entry {
    /// The position in the order of all blocks of the loop.
    let sequence: UInt64
    let work: Work
  }

  private var entries = MoveQueue<Entry>()
  /// An upper estimate of the number of entries that another mode has run; entries removed by a run may still be
  /// counted.
  private var takenCount = 0

  var count: Int { entries.count }
  var isEmpty: Bool { entries.isEmpty }
  /// The sequence number of the first entry, or `UInt64.max` if there is none.
  var firstSequence: UInt64 { entries.isEmpty ? .max : entries.withElement(at: 0) { $0.sequence } }

  /// Appends an entry with a higher sequence number than all others.
  ///
  /// - Complexity: O(1) amortised
  @inline(__always)
  mutating func append(_ entry: consuming Entry) { entries.append(entry) }

  /// Moves all arrivals to the end of the queue, whose sequence numbers must ascend throughout.
  ///
  /// - Complexity: O(1) if the queue is empty
  mutating func append(all arrived: inout MoveQueue<Entry>) {
    if entries.isEmpty {
      swap(&entries, &arrived)
    } else {
      while !arrived.isEmpty { append(arrived.takeFirst()) }
    }
  }

  /// Moves the arrivals posted before `sequence` to the end of the queue.
  mutating func append(from arrived: inout MoveQueue<Entry>, before sequence: UInt64) {
    while !arrived.isEmpty, arrived.withElement(at: 0, { $0.sequence < sequence }) { append(arrived.takeFirst()) }
  }

  /// Notes that another mode has run one of the entries, and removes such entries before they exceed half of the queue.
  ///
  /// - Complexity: O(1) amortised
  mutating func noteTaken() {
    takenCount += 1
    guard 2 * takenCount >= entries.count else { return }
    takenCount = 0
    var kept = MoveQueue<Entry>()
    while !entries.isEmpty {
      let entry = entries.takeFirst()
      if !entry.work.isTaken { kept.append(entry) }
    }
    swap(&entries, &kept)
  }

  @inline(__always)
  mutating func takeFirst() -> Entry { entries.takeFirst() }

  /// Whether the queue contains a block posted at `sequence` or later.
  ///
  /// - Complexity: O(1) amortised
  mutating func hasBlock(from sequence: UInt64) -> Bool {
    while !entries.isEmpty {
      let (last, isTaken) = entries.withElement(at: entries.count - 1) { ($0.sequence, $0.work.isTaken) }
      if !isTaken { return last >= sequence }
      _ = entries.takeLast()
    }
    return false
  }

  /// Moves the entries posted at `sequence` or later to `batch`, which must be empty.
  ///
  /// - Complexity: O(1) if these are all entries, which holds except in a run nested in a block
  mutating func detach(from sequence: UInt64, into batch: inout BlockQueue) {
    precondition(batch.isEmpty, "a batch is taken into an empty queue")
    if firstSequence >= sequence {
      swap(&self, &batch)
    } else {
      entries.moveSuffix(from: offset(of: sequence), to: &batch.entries)
    }
  }

  /// Moves the entries posted at `sequence` or later, but before `end`, to `batch`, which must be empty.
  ///
  /// - Complexity: O(n) in the number of entries posted at `sequence` or later
  mutating func detach(from sequence: UInt64, below end: UInt64, into batch: inout BlockQueue) {
    detach(from: sequence, into: &batch)
    batch.entries.moveSuffix(from: batch.offset(of: end), to: &entries)
  }

  /// Returns the rest of a batch to the queue.
  ///
  /// - Complexity: O(1) if the queue is empty
  mutating func takeBack(_ batch: inout BlockQueue) {
    // The queue's entries were posted either later, or earlier but not visible to a run nested in a block.
    var later = MoveQueue<Entry>()
    entries.moveSuffix(from: offset(of: batch.firstSequence), to: &later)
    append(all: &batch.entries)
    append(all: &later)
    takenCount += batch.takenCount
    batch.takenCount = 0
  }

  /// Returns the number of entries posted before `sequence`.
  ///
  /// - Complexity: O(log n)
  private func offset(of sequence: UInt64) -> Int {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if entries.withElement(at: middle, { $0.sequence < sequence }) { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Frees excess memory after a burst.
  mutating func trim() { entries.trim(to: 4096) }

  /// Checks the queue's invariants, for tests.
  func checkInvariants() {
    entries.checkInvariants()
    for offset in stride(from: 1, to: entries.count, by: 1) {
      let earlier = entries.withElement(at: offset - 1) { $0.sequence }
      let later = entries.withElement(at: offset) { $0.sequence }
      precondition(earlier < later, "block \(earlier) stands before \(later)")
    }
  }
}
