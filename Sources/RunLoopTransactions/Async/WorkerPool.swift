// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCore
import RunLoopThreads
import Synchronization

/// A pool of threads that run the operations of asynchronous transactions.
///
/// The pool starts a thread when there is more work than there are idle threads, up to a limit. Threads stay until
/// the pool ends, when its last reference is released and its transactions are complete. The pool is not meant for
/// blocking work: an operation that blocks occupies its thread.
///
/// The corresponding part of Texture (AsyncDisplayKit) is its `ASAsyncTransactionQueue`.
public final class WorkerPool: Sendable {
  private let core: WorkerPoolCore
  private let generation = ForkGeneration.current

  /// The default pool of transactions, with as many threads as the process can use processors.
  ///
  /// A forked child process has its own.
  public static var shared: WorkerPool {
    while true {
      let address = sharedAddress.load(ordering: .acquiring)
      if let known = UnsafeRawPointer(bitPattern: address) {
        let pool = Unmanaged<WorkerPool>.fromOpaque(known).takeUnretainedValue()
        if !pool.generation.isPast { return pool }
      }
      // If several threads get here first, only one of their pools is kept. A child does not touch its parent's pool.
      let made = Unmanaged.passRetained(WorkerPool())
      let new = UInt(bitPattern: made.toOpaque())
      if sharedAddress.compareExchange(expected: address, desired: new, ordering: .acquiringAndReleasing).exchanged {
        return made.takeUnretainedValue()
      }
      made.release()
    }
  }

  private static let sharedAddress = Atomic<UInt>(0)

  /// Creates a pool, which starts without threads.
  ///
  /// - Parameters:
  ///   - name: The name of the threads, to which a number is appended.
  ///   - threads: The maximum number of threads. Values below 1 count as 1. Defaults to the number of processors on
  ///     which the calling thread may run (`sched_getaffinity`), but no more than the process's control groups
  ///     allow time for (`cpu.max`), rounded up.
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

/// State shared by the threads of a pool, so that they do not retain the pool.
private final class WorkerPoolCore: @unchecked Sendable {
  // Sendable: the lock guards the variables.

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
  /// Incremented when idle threads, which sleep on it, should look for work.
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

  /// Reserves the threads to start if there is more work than there are idle threads, and returns their numbers.
  ///
  /// Requires the lock.
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
      // If there are other threads, they do the work.
      return threads == 0 ? queue.takeAll() : []
    }
    for item in left { item.transaction.fail(.noWorkers(error)) }
  }

  /// The body of a worker's thread.
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

  /// Waits for work, and returns nil if the thread should end.
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

  /// Starts new threads for the remaining work after a work item has ended its thread.
  fileprivate func threadHasEnded() {
    let started = lock.withLock {
      threads -= 1
      return claimThreads()
    }
    start(started)
  }

  /// Lets the threads end once there is no work left.
  func stop() {
    lock.withLock {
      isStopping = true
      changes.wrappingAdd(1, ordering: .releasing)
    }
    changes.futexWake(.max)
  }
}

/// Detects that a work item has ended its worker's thread.
private final class WorkerEnd: LoopAttachment, @unchecked Sendable {
  // Sendable: the variable is used only on the worker's thread.

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
