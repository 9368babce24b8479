import Synchronization

/// Where any thread leaves blocks for a loop: many producers, one consumer.
///
/// A post is an append under a lock of a few instructions. The loop swaps the whole buffer for an empty one.
final class Inbox: @unchecked Sendable {
  enum Entry {
    case inDefaultMode(Block)
    case inCommonModes(Block)
    case inModes(SharedBlock)
    case job(LoopJob)
  }

  private let lock = Lock()
  // Guarded by the lock.
  @exclusivity(unchecked) private var entries = MoveQueue<Entry>()
  @exclusivity(unchecked) private var isClosed = false
  /// A hint for the loop's thread, which may lag behind.
  ///
  /// The loop never sleeps on it: see ``drain(into:)``.
  private let hasEntries = Atomic<Bool>(false)

  /// Whether there may be entries.
  ///
  /// A post that happened before is seen.
  var mayHaveEntries: Bool {
    @inline(__always) get { hasEntries.load(ordering: .relaxed) }
  }

  /// Appends an entry; false once the inbox is closed.
  @inline(__always)
  func append(_ entry: consuming Entry) -> Bool {
    lock.lock()
    guard !isClosed else {
      lock.unlock()
      return false
    }
    entries.append(entry)
    if !hasEntries.load(ordering: .relaxed) { hasEntries.store(true, ordering: .relaxed) }
    lock.unlock()
    return true
  }

  /// Swaps all entries into `drained`, which must be empty.
  ///
  /// The loop's thread.
  func drain(into drained: inout MoveQueue<Entry>) {
    precondition(drained.isEmpty, "the last drain has been sorted")
    lock.lock()
    swap(&entries, &drained)
    hasEntries.store(false, ordering: .relaxed)
    lock.unlock()
  }

  /// Refuses what comes from now on.
  func close() {
    lock.withLock { isClosed = true }
  }

  /// The inbox's rules, for tests.
  func checkInvariants() {
    lock.withLock {
      entries.checkInvariants()
      precondition(hasEntries.load(ordering: .relaxed) == !entries.isEmpty, "the hint is exact under the lock")
    }
  }
}
