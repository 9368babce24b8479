// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopThreads
import Synchronization

/// Threads that run the operations of asynchronous transactions.
///
/// A thread is started when there is more work than waiting threads, up to a limit, and stays until the pool ends: with
/// the pool's last reference, when its transactions are complete. The pool is not meant for work that waits: an
/// operation that blocks keeps its thread.
///
/// The corresponding part of Texture (AsyncDisplayKit) is its `ASAsyncTransactionQueue`.
public final class WorkerPool: Sendable {
  private let core: WorkerPoolCore
  private let generation = ForkGeneration.current

  /// The pool of all transactions that name no other pool, with as many threads as the process can use processors.
  ///
  /// A forked child has a pool of its own.
  public static var shared: WorkerPool {
    while true {
      let address = sharedAddress.load(ordering: .acquiring)
      if let known = UnsafeRawPointer(bitPattern: address) {
        let pool = Unmanaged<WorkerPool>.fromOpaque(known).takeUnretainedValue()
        if !pool.generation.isPast { return pool }
      }
      // Of several threads that ask first, one makes the pool that stays. The parent's is left alone in a child.
      let made = Unmanaged.passRetained(WorkerPool())
      let new = UInt(bitPattern: made.toOpaque())
      if sharedAddress.compareExchange(expected: address, desired: new, ordering: .acquiringAndReleasing).exchanged {
        return made.takeUnretainedValue()
      }
      made.release()
    }
  }

  private static let sharedAddress = Atomic<UInt>(0)

  /// Makes a pool without a thread.
  ///
  /// - Parameters:
  ///   - name: The name of its threads, followed by their numbers.
  ///   - threads: The largest number of threads that it starts; less than one counts as one. By default there are as
  ///     many as processors on which the calling thread may run (`sched_getaffinity`), and no more than the process's
  ///     control groups allow time for (`cpu.max`), rounded up.
  public init(name: String = "worker", threads: Int? = nil) {
    core = WorkerPoolCore(name: name, limit: max(1, threads ?? ProcessorQuota.usableProcessors))
  }

  deinit { core.stop() }

  /// The number of threads that the pool has started and that have not ended.
  ///
  /// Can be read from any thread.
  public var threadCount: Int { core.threadCount }

  func enqueue(_ operations: ContiguousArray<(any AsyncOperation)?>, of transaction: AsyncTransactionCore) {
    guard !generation.isPast else {
      fatalError(
        "process \(getpid()) uses a worker pool of the process that it was forked from; WorkerPool.shared is its own")
    }
    core.enqueue(operations, of: transaction)
  }
}

/// What the threads of a pool share, so that they do not hold the pool.
private final class WorkerPoolCore: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock.

  struct Item {
    let transaction: AsyncTransactionCore
    let operation: any AsyncOperation
  }

  private let name: String
  private let limit: Int
  private let lock = Lock()
  @exclusivity(unchecked) private var queue = WorkQueue<Item>()
  @exclusivity(unchecked) private var threads = 0
  @exclusivity(unchecked) private var idle = 0
  @exclusivity(unchecked) private var lastNumber = 0
  @exclusivity(unchecked) private var isStopping = false
  /// Counts on whenever idle threads are to look, who sleep on it.
  private let changes = Atomic<UInt32>(0)

  init(name: String, limit: Int) {
    self.name = name
    self.limit = limit
  }

  var threadCount: Int { lock.withLock { threads } }

  func enqueue(_ operations: ContiguousArray<(any AsyncOperation)?>, of transaction: AsyncTransactionCore) {
    lock.lock()
    for case let operation? in operations {
      queue.append(
        Item(transaction: transaction, operation: operation), priority: operation.priority,
        pieces: operation.pieceCount)
    }
    let woken = min(idle, queue.count)
    changes.wrappingAdd(1, ordering: .releasing)
    let started = claimThreads()
    lock.unlock()
    if woken > 0 { changes.futexWake(Int32(clamping: woken)) }
    start(started)
  }

  /// Counts the threads that are to be started, as there is more to do than threads wait; returns the number of the
  /// first.
  ///
  /// Under the lock.
  private func claimThreads() -> Range<Int> {
    let count = max(0, min(limit - threads, queue.count - idle))
    threads += count
    defer { lastNumber += count }
    return lastNumber + 1..<lastNumber + 1 + count
  }

  private func start(_ numbers: Range<Int>) {
    for number in numbers {
      let thread = Thread(name: "\(name) \(number)", configuration: .init()) { self.work() }
      do throws(ThreadError) {
        try thread.tryStart()
      } catch {
        threadHasNotStarted(error)
      }
    }
  }

  private func threadHasNotStarted(_ error: ThreadError) {
    let left = lock.withLock {
      threads -= 1
      // The others do it all.
      return threads == 0 ? queue.takeAll() : []
    }
    for item in left { item.transaction.fail(.noWorkers(error)) }
  }

  /// What a worker's thread does.
  private func work() {
    let end = WorkerEnd(self)
    _ = RunLoop.current.attach(end)
    while let (item, piece) = next() {
      end.running = (item, piece)
      item.transaction.run(item.operation, piece)
      end.running = nil
    }
    RunLoop.current.detach(end)
    end.stack.free()
  }

  /// Waits for a piece of work; nil: the thread is to end.
  private func next() -> (item: Item, piece: Int)? {
    lock.lock()
    while true {
      if let next = queue.takeFirst() {
        lock.unlock()
        return next
      }
      if isStopping {
        threads -= 1
        lock.unlock()
        return nil
      }
      let seen = changes.load(ordering: .acquiring)
      idle += 1
      lock.unlock()
      changes.futexWait(while: seen)
      lock.lock()
      idle -= 1
    }
  }

  /// Work has ended a thread: others are started for what is left.
  fileprivate func threadHasEnded() {
    let started = lock.withLock {
      threads -= 1
      return claimThreads()
    }
    start(started)
  }

  /// Lets the threads end when there is nothing left to do.
  func stop() {
    lock.withLock {
      isStopping = true
      changes.wrappingAdd(1, ordering: .releasing)
    }
    changes.futexWake(.max)
  }
}

/// Notices that a piece of work has ended its worker's thread.
private final class WorkerEnd: LoopAttachment, @unchecked Sendable {
  // Sendable: the variable is the thread's alone.

  private let pool: WorkerPoolCore
  let stack = SignalStack()
  @exclusivity(unchecked) var running: (item: WorkerPoolCore.Item, piece: Int)?

  init(_ pool: WorkerPoolCore) { self.pool = pool }

  func loopDidEnd() {
    stack.free()
    guard let (item, piece) = running.take() else { return }
    item.transaction.abandon(item.operation, piece)
    pool.threadHasEnded()
  }
}
