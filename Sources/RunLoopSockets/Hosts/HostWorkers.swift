// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import RunLoopSystemEvents

/// The threads that resolve hosts, and the queue of lookups.
///
/// A thread stops counting toward the limit if its lookup was cancelled, or if it takes longer than
/// ``HostResolver/patience`` while others are waiting; another thread then starts. This way names whose servers do not
/// respond do not delay others, until there are `HostResolver.maximumThreadCount` threads.
///
/// A forked child has workers of its own. Lookups of the parent finish in the parent.
final class HostWorkers: @unchecked Sendable {
  // Sendable: the lock guards all mutable state.

  private static let ours = PerProcess { HostWorkers { $0.answer() } }

  static var shared: HostWorkers { ours.value }

  private final class Worker {
    var lookup: HostLookup?
    /// Whether the thread no longer counts because its lookup was cancelled or takes long; it ends after the lookup.
    var isWrittenOff = false
    /// Whether the previous check has found the thread with its current lookup.
    var wasSeen = false
  }

  private let lock = Lock()
  private let answer: @Sendable (HostResolver.Query) -> HostResolver.Answer
  private let patience: Duration
  /// The queued lookups, keyed by number; numbers from `first` on are in order, without those of cancelled lookups.
  private var waiting: [UInt64: HostLookup] = [:]
  private var numbers: [ObjectIdentifier: UInt64] = [:]
  private var first: UInt64 = 0
  private var next: UInt64 = 0
  private var workers: [ObjectIdentifier: Worker] = [:]
  /// The number of threads that count toward the limit.
  private var counted = 0
  private var mostCounted = 0
  private var isWatched = false

  /// Creates workers that resolve hosts with a function that may block for a long time.
  ///
  /// - Parameter patience: The time after which a lookup no longer delays others. Tests use a longer one to prevent
  ///   additional threads.
  init(
    patience: Duration = HostResolver.patience,
    _ answer: @escaping @Sendable (HostResolver.Query) -> HostResolver.Answer
  ) {
    self.answer = answer
    self.patience = patience
  }

  /// The maximum number of threads that counted toward the limit at once, for tests.
  var peak: Int { lock.withLock { mostCounted } }
  var threadCount: Int { lock.withLock { workers.count } }
  /// The number of threads with a lookup in progress.
  var busyCount: Int { lock.withLock { workers.values.count { $0.lookup != nil } } }
  var waitingCount: Int { lock.withLock { waiting.count } }

  /// Queues a lookup, and starts a thread if the limit permits.
  ///
  /// - Complexity: O(1), as for cancelling.
  func add(_ lookup: HostLookup) {
    lock.lock()
    waiting[next] = lookup
    numbers[ObjectIdentifier(lookup)] = next
    next += 1
    let worker = makeWorkerIfNeeded()
    let watches = worker == nil && !isWatched
    if watches { isWatched = true }
    lock.unlock()
    lookup.onGivingUp { [self] in leave($0) }
    if let worker { start(worker) }
    if watches { watch() }
  }

  /// Requires the lock.
  private func makeWorkerIfNeeded() -> Worker? {
    guard !waiting.isEmpty, counted < HostResolver.maximumLookupCount,
      workers.count < HostResolver.maximumThreadCount
    else {
      return nil
    }
    let worker = Worker()
    workers[ObjectIdentifier(worker)] = worker
    counted += 1
    mostCounted = max(mostCounted, counted)
    return worker
  }

  /// Requires the lock.
  private func writeOff(_ worker: Worker) {
    guard !worker.isWrittenOff else { return }
    worker.isWrittenOff = true
    counted -= 1
  }

  private func leave(_ lookup: HostLookup) {
    lock.lock()
    var released: HostLookup?
    if let number = numbers.removeValue(forKey: ObjectIdentifier(lookup)) {
      released = waiting.removeValue(forKey: number)
    } else if let worker = workers.values.first(where: { $0.lookup === lookup }) {
      writeOff(worker)
    }
    let worker = makeWorkerIfNeeded()
    lock.unlock()
    withExtendedLifetime(released) {}
    if let worker { start(worker) }
  }
}

// MARK: - Threads

extension HostWorkers {
  private final class Start {
    let workers: HostWorkers
    let worker: Worker

    init(_ workers: HostWorkers, _ worker: Worker) { (self.workers, self.worker) = (workers, worker) }
  }

  private func start(_ worker: Worker) {
    let context = Unmanaged.passRetained(Start(self, worker))
    do throws(SystemError) {
      _ = try SystemCall.threadCreate.make { crl_thread_create(0, HostWorkers.work, context.toOpaque()) }
    } catch {
      context.release()
      lock.lock()
      end(worker)
      // Other threads that count will take the queued lookups. If there are none, the lookups fail.
      let left = counted == 0 ? waiting.sorted { $0.key < $1.key }.map(\.value) : []
      if counted == 0 {
        waiting = [:]
        numbers = [:]
      }
      lock.unlock()
      for lookup in left { lookup.finish(.failure(.system(host: lookup.query.host, error))) }
    }
  }

  /// Requires the lock.
  private func end(_ worker: Worker) {
    writeOff(worker)
    workers[ObjectIdentifier(worker)] = nil
  }

  private static let work: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
    guard let context else { return nil }
    let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
    while let lookup = start.workers.next(start.worker) { lookup.finish(start.workers.answer(lookup.query)) }
    return nil
  }

  /// Returns the next lookup, or `nil` to end the thread.
  private func next(_ worker: Worker) -> HostLookup? {
    lock.lock()
    let before = worker.lookup
    worker.lookup = nil
    worker.wasSeen = false
    if !worker.isWrittenOff, let lookup = takeFirst() { worker.lookup = lookup } else { end(worker) }
    // If this thread ends because it no longer counted, its slot may be needed for another.
    let other = makeWorkerIfNeeded()
    let lookup = worker.lookup
    lock.unlock()
    withExtendedLifetime(before) {}
    if let other { start(other) }
    return lookup
  }

  /// Requires the lock.
  ///
  /// - Complexity: Amortized O(1), because each number is visited once.
  private func takeFirst() -> HostLookup? {
    while first < next {
      let number = first
      first += 1
      guard let lookup = waiting.removeValue(forKey: number) else { continue }
      numbers[ObjectIdentifier(lookup)] = nil
      return lookup
    }
    return nil
  }
}

// MARK: - Long lookups

extension HostWorkers {
  /// Checks at intervals whether the threads make progress while lookups are queued.
  private func watch() {
    let loop = ServiceThread.loop
    loop.add(
      Timer(deadline: loop.instant(after: patience), interval: patience) { [self] timer in
        if !relieve() { timer.invalidate() }
      }, forMode: .default)
  }

  /// Starts replacements for threads that have had the same lookup since the previous call, or returns false if no
  /// lookups are queued.
  func relieve() -> Bool {
    lock.lock()
    isWatched = !waiting.isEmpty
    var started: [Worker] = []
    if isWatched {
      for worker in workers.values where worker.lookup != nil && !worker.isWrittenOff {
        if worker.wasSeen { writeOff(worker) }
        worker.wasSeen = true
      }
      while started.count < waiting.count, let worker = makeWorkerIfNeeded() { started.append(worker) }
    }
    let watches = isWatched
    lock.unlock()
    for worker in started { start(worker) }
    return watches
  }
}
