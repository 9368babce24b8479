import CRunLoopSystem
import RunLoopCore
import Synchronization

/// A lookup of a host that is under way.
public final class HostLookup: Sendable {
  let query: HostResolver.Query
  private let body: @Sendable (HostLookup, HostResolver.Answer) -> Void
  private let isOver = Atomic<Bool>(false)

  init(_ query: HostResolver.Query, _ body: @escaping @Sendable (HostLookup, HostResolver.Answer) -> Void) {
    self.query = query
    self.body = body
  }

  /// Drops the result: unless its block is being called, it is not called any more.
  ///
  /// A lookup that waits for its turn is not made; one that is under way in the system is left to end. Any thread; again:
  /// nothing.
  public func cancel() { isOver.store(true, ordering: .releasing) }

  /// Whether the lookup was cancelled, or its block called.
  ///
  /// Any thread.
  public var isFinished: Bool { isOver.load(ordering: .acquiring) }

  /// Takes the right to call the block.
  func claim() -> Bool { !isOver.exchange(true, ordering: .acquiringAndReleasing) }

  func finish(_ answer: HostResolver.Answer) { body(self, answer) }
}

/// The threads that look hosts up, and what waits for them.
///
/// A child of a fork has workers of its own; its parent's lookups are answered in the parent.
final class HostWorkers: @unchecked Sendable {
  // Sendable: guarded by the lock.

  private static let ours = PerProcess { HostWorkers() }

  /// This process's.
  static var shared: HostWorkers { ours.value }

  private let lock = Lock()
  private var waiting: [HostLookup] = []
  private var threads = 0
  private var mostThreads = 0

  /// The most threads there were at a time, for tests.
  var peak: Int { lock.withLock { mostThreads } }
  /// The threads that there are.
  var threadCount: Int { lock.withLock { threads } }

  func add(_ lookup: HostLookup) {
    lock.lock()
    waiting.append(lookup)
    let needsThread = threads < HostResolver.threadLimit
    if needsThread {
      threads += 1
      mostThreads = max(mostThreads, threads)
    }
    lock.unlock()
    if needsThread { startThread() }
  }

  private func startThread() {
    do throws(SystemError) {
      let context = Unmanaged.passUnretained(self).toOpaque()
      _ = try SystemCall.threadCreate.make { crl_thread_create(0, HostWorkers.work, context) }
    } catch {
      lock.lock()
      threads -= 1
      // Another thread will come to them, if there is one.
      let left = threads == 0 ? waiting : []
      if threads == 0 { waiting = [] }
      lock.unlock()
      for lookup in left { lookup.finish(.failure(.system(error))) }
    }
  }

  private static let work: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
    guard let context else { return nil }
    // The workers live as long as the process.
    let workers = Unmanaged<HostWorkers>.fromOpaque(context).takeUnretainedValue()
    while let lookup = workers.next() { lookup.finish(lookup.query.answer()) }
    return nil
  }

  /// The next lookup that is still wanted; nil ends the thread.
  private func next() -> HostLookup? {
    while true {
      lock.lock()
      let lookup = waiting.isEmpty ? nil : waiting.removeFirst()
      if lookup == nil { threads -= 1 }
      lock.unlock()
      // What was cancelled is released here, without the lock.
      guard let lookup, lookup.isFinished else { return lookup }
    }
  }
}
