// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopCore
import RunLoopSystemEvents

/// The threads that look hosts up, and what waits for them.
///
/// A thread that is in the system with a lookup nobody wants any more does not count, nor does one that has been there
/// for longer than ``HostResolver/patience`` while others wait: in its place another is started. So names whose servers
/// do not answer do not hold up the others, until there are `HostResolver.maximumThreadCount` threads.
///
/// A child of a fork has workers of its own; its parent's lookups are answered in the parent.
final class HostWorkers: @unchecked Sendable {
  // Sendable: guarded by the lock.

  private static let ours = PerProcess { HostWorkers { $0.answer() } }

  /// This process's.
  static var shared: HostWorkers { ours.value }

  /// A thread, as those see it who look after the others.
  private final class Worker {
    /// What it looks up.
    var lookup: HostLookup?
    /// It does not count, as its lookup is not wanted or takes long, and ends with it.
    var isWrittenOff = false
    /// It has been seen with this lookup when the lookups that wait were looked at.
    var wasSeen = false
  }

  private let lock = Lock()
  private let answer: @Sendable (HostResolver.Query) -> HostResolver.Answer
  private let patience: Duration
  /// What waits, by its number; the numbers from `first` on are in their order, and those that have left are missing.
  private var waiting: [UInt64: HostLookup] = [:]
  private var numbers: [ObjectIdentifier: UInt64] = [:]
  private var first: UInt64 = 0
  private var next: UInt64 = 0
  private var workers: [ObjectIdentifier: Worker] = [:]
  /// The workers that count.
  private var counted = 0
  private var mostCounted = 0
  private var isWatched = false

  /// Takes what looks up, which may take long.
  ///
  /// - Parameter patience: Tests have more, so that no thread comes that they do not expect.
  init(
    patience: Duration = HostResolver.patience,
    _ answer: @escaping @Sendable (HostResolver.Query) -> HostResolver.Answer
  ) {
    self.answer = answer
    self.patience = patience
  }

  /// The most threads that counted at a time, for tests.
  var peak: Int { lock.withLock { mostCounted } }
  /// The threads that there are.
  var threadCount: Int { lock.withLock { workers.count } }
  /// The threads that are looking something up.
  var busyCount: Int { lock.withLock { workers.values.count { $0.lookup != nil } } }
  /// How many lookups wait for a thread.
  var waitingCount: Int { lock.withLock { waiting.count } }

  /// Looks a host up as soon as there is a thread.
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

  /// Under the lock.
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

  /// Under the lock.
  private func writeOff(_ worker: Worker) {
    guard !worker.isWrittenOff else { return }
    worker.isWrittenOff = true
    counted -= 1
  }

  /// A lookup is not wanted any more.
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
      // Another thread will come to them, if there is one.
      let left = counted == 0 ? waiting.sorted { $0.key < $1.key }.map(\.value) : []
      if counted == 0 {
        waiting = [:]
        numbers = [:]
      }
      lock.unlock()
      for lookup in left { lookup.finish(.failure(.system(host: lookup.query.host, error))) }
    }
  }

  /// Under the lock.
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

  /// The next lookup; nil ends the thread.
  private func next(_ worker: Worker) -> HostLookup? {
    lock.lock()
    let before = worker.lookup
    worker.lookup = nil
    worker.wasSeen = false
    if !worker.isWrittenOff, let lookup = takeFirst() { worker.lookup = lookup } else { end(worker) }
    // One that was written off leaves its place to another, if it was the last that there may be.
    let other = makeWorkerIfNeeded()
    let lookup = worker.lookup
    lock.unlock()
    withExtendedLifetime(before) {}
    if let other { start(other) }
    return lookup
  }

  /// Under the lock.
  ///
  /// - Complexity: Amortized O(1): each number is passed once.
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

// MARK: - Lookups that take long

extension HostWorkers {
  /// Sees repeatedly, as long as lookups wait, whether the threads get on.
  private func watch() {
    let loop = ServiceThread.loop
    loop.add(
      Timer(deadline: loop.instant(after: patience), interval: patience) { [self] timer in
        if !relieve() { timer.invalidate() }
      }, forMode: .default)
  }

  /// Starts others in the place of threads that have been with one lookup since this was last called; false if nothing
  /// waits.
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
