import CRunLoopSystem
import Glibc
public import RunLoopCore
import Synchronization

/// A thread with a name, a state, and a run loop to which work can be given.
///
/// Make one with a block, or subclass it and override ``main()``. The object is held by its thread while that runs, and
/// by nobody else: it ends with the last reference after the thread has finished. ``current`` is also there for threads that
/// were made by other means.
///
/// The corresponding Foundation class is `Thread`.
open class Thread: @unchecked Sendable, Hashable {
  // Sendable: the variables are guarded by the lock, but for those whose comment says otherwise. A subclass guards its own.

  private let lock = ThreadLock()
  private var lifecycle: ThreadLifecycle
  private var fullName: String?
  private var settings: Configuration
  private var failedStart: ThreadError?
  private var refused: [Refusal] = []
  private var threadID: Int32 = 0
  private var ownSlot: (any Sendable)?
  private var body: BareBlock?
  private var hasRunBody = false
  /// The pieces of work that the thread runs, one within the other.
  ///
  /// The thread's own.
  private var running: [PerformTask] = []
  /// Where the thread's loop is to be found, by others too.
  let promise: LoopPromise
  /// Whom the thread waits for.
  let waiting = WaitRecord()
  /// One once the thread has finished, for those who wait for its end.
  private let endWord = Atomic<UInt32>(0)
  private let isMain: Bool

  /// Makes a thread that has not been started and runs ``main()``.
  public init() {
    lifecycle = ThreadLifecycle()
    settings = Configuration()
    promise = LoopPromise()
    isMain = false
  }

  /// Makes a thread that has not been started and runs a block.
  ///
  /// The block is released when it has returned.
  public init(block: @escaping @Sendable () -> Void) {
    lifecycle = ThreadLifecycle()
    settings = Configuration()
    promise = LoopPromise()
    isMain = false
    body = BareBlock(block)
  }

  /// Makes a thread that has not been started, with settings, and runs a block.
  public convenience init(
    name: String?, configuration: Configuration, block: @escaping @Sendable () -> Void
  ) {
    self.init(block: block)
    self.name = name
    self.configuration = configuration
  }

  /// Makes the object of a thread that runs already.
  init(foreign threadID: Int32, isMain: Bool, promise: LoopPromise) {
    lifecycle = .foreign
    settings = Configuration()
    self.threadID = threadID
    self.isMain = isMain
    self.promise = promise
  }

  /// Makes an object for what is left of a thread whose own has ended.
  init(endedThread threadID: Int32) {
    lifecycle = .ended
    settings = Configuration()
    self.threadID = threadID
    isMain = false
    promise = LoopPromise()
    promise.end(onThread: false)
    endWord.store(1, ordering: .relaxed)
  }

  /// What the thread does, on it.
  ///
  /// The block that it was made with runs; a subclass overrides this.
  open func main() {
    // No frame holds the block: a thread that leaves by `exit()` releases it at its end.
    guard let words = beginBody() else { return }
    words.call()
    // Released outside the lock.
    _ = lock.withLock {
      defer { body = nil }
      return body
    }
  }

  /// The last work on the thread before its loop ends, also after ``exit()``.
  func finishWork() {}

  /// Who takes the work that is given to the thread and counts it, if anybody does.
  var keeper: ResidentCore? { nil }

  /// The block, for the first who asks.
  private func beginBody() -> BareBlock.Words? {
    lock.withLock {
      guard !hasRunBody else { return nil }
      hasRunBody = true
      return body?.words
    }
  }

  /// Marks the thread as cancelled.
  ///
  /// It is for its own code to look at ``isCancelled``.
  ///
  /// A thread that is cancelled before it is started does not start. Any thread.
  open func cancel() {
    lock.withLock { lifecycle.cancel() }
  }

  /// Whether both are the same.
  public static func == (left: Thread, right: Thread) -> Bool { left === right }

  /// Hashes the identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

// The thread's state, from any thread.
extension Thread {
  /// Whether the thread has begun and not finished.
  public var isExecuting: Bool { lock.withLock { lifecycle.phase == .executing } }

  /// Whether the thread has ended, or could not be started.
  public var isFinished: Bool { lock.withLock { lifecycle.phase == .finished } }

  /// Whether ``cancel()`` was called.
  public var isCancelled: Bool { lock.withLock { lifecycle.isCancelled } }

  /// Whether ``start()`` has not been called.
  var hasNotStarted: Bool { lock.withLock { lifecycle.phase == .created } }

  /// Whether this is the main thread.
  public var isMainThread: Bool { isMain }

  /// Why the thread could not be started, if ``start()`` was called and failed.
  public var startError: ThreadError? { lock.withLock { failedStart } }

  /// What of the thread's settings the system has refused, and why.
  ///
  /// A setting that is refused leaves the thread as it was; it runs all the same.
  public var refusals: [Refusal] { lock.withLock { refused } }

  /// The thread's name, as long as it may be.
  ///
  /// The kernel keeps the first 15 bytes of it, for tools outside. Any thread, before or after the start.
  public var name: String? {
    get { lock.withLock { fullName } }
    set {
      lock.withLock {
        fullName = newValue
        if lifecycle.phase == .executing { applyName() }
      }
    }
  }

  /// The bytes of the thread's stack; zero is the system's usual size.
  ///
  /// It counts at the start; what is less than the system's minimum counts as the minimum. Any thread.
  public var stackSize: Int {
    get { configuration.stackSize }
    set { lock.withLock { settings.stackSize = max(0, newValue) } }
  }

  /// Stack, niceness and processors.
  ///
  /// Niceness and processors may be changed while the thread runs.
  public var configuration: Configuration {
    get { lock.withLock { settings } }
    set {
      lock.withLock {
        settings = newValue
        if lifecycle.phase == .executing { applySettings() }
      }
    }
  }

  /// A place for one value of whoever builds on this class.
  ///
  /// Any thread.
  package var slot: (any Sendable)? {
    get { lock.withLock { ownSlot } }
    set {
      // The value before is released outside the lock.
      let before = lock.withLock {
        let before = ownSlot
        ownSlot = newValue
        return before
      }
      withExtendedLifetime(before) {}
    }
  }

  /// The thread's run loop, made now if need be; nil once the thread has ended.
  ///
  /// Any thread.
  ///
  /// What is posted to it before the thread runs it waits until then.
  public var runLoop: RunLoop? { promise.loop }

  /// The name, or something that stands for it in messages.
  var label: String {
    if let name, !name.isEmpty { return "thread \"\(name)\"" }
    if isMain { return "the main thread" }
    let id = lock.withLock { threadID }
    return id == 0 ? "a thread without a name" : "thread \(id)"
  }
}

// Starting and ending.
extension Thread {
  /// Starts the thread.
  ///
  /// It never throws: if the thread cannot be started, it is finished, and ``startError`` says why. Starting a thread again
  /// does nothing but set ``startError``. Any thread. The corresponding Foundation method is `start()`.
  public func start() {
    do {
      try tryStart()
    } catch {
      lock.withLock { failedStart = error }
    }
  }

  /// Starts the thread, or says why it cannot be started.
  ///
  /// - Throws: ``ThreadError/alreadyStarted(thread:)``, ``ThreadError/cancelledBeforeStart(thread:)``, or
  ///   ``ThreadError/cannotStart(thread:number:)``.
  public func tryStart() throws(ThreadError) {
    let (action, stackSize) = lock.withLock { (lifecycle.start(), settings.stackSize) }
    switch action {
    case .refuse(.alreadyStarted): throw .alreadyStarted(thread: label)
    case .refuse(.cancelled):
      finishWithoutThread()
      throw .cancelledBeforeStart(thread: label)
    case .create:
      // The thread owns one reference to its object from here to its last step.
      let own = Unmanaged.passRetained(self)
      let answer = crl_thread_create(
        stackSize == 0 ? 0 : max(stackSize, Thread.smallestStack), Thread.entry, own.toOpaque())
      guard answer == 0 else {
        lock.withLock { lifecycle.startFailed() }
        finishWithoutThread()
        own.release()
        throw .cannotStart(thread: label, number: -answer)
      }
    }
  }

  private static let smallestStack = 64 * 1024

  private static let entry: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { pointer in
    guard let pointer else { return nil }
    let thread = Unmanaged<Thread>.fromOpaque(pointer)
    thread._withUnsafeGuaranteedRef { $0.beginOnThread() }
    thread._withUnsafeGuaranteedRef { $0.main() }
    // The end comes from a thread-specific destructor, as it must for a thread that leaves by `exit()`.
    return nil
  }

  private func beginOnThread() {
    Thread.attach(self)
    lock.withLock {
      threadID = RunLoop.callingThreadID
      lifecycle.begin()
      applyName()
      applySettings()
    }
  }

  /// Notes that the calling thread begins a piece of work, or has come to the end of it.
  static func noteBegun(_ task: PerformTask) { current.running.append(task) }
  static func noteEnded(_ task: PerformTask) { current.running.removeAll { $0 === task } }

  /// The last that happens on the thread: its hook runs, its loop ends, and whoever waits for its end goes on.
  func endOnThread() {
    // What a thread that leaves by `exit()` was running never comes to its end.
    while let task = running.popLast() { task.abandon() }
    finishWork()
    WillExit.run(for: self)
    promise.end(onThread: true)
    // Released outside the lock, and before anybody goes on.
    _ = lock.withLock {
      lifecycle.end()
      defer {
        body = nil
        ownSlot = nil
      }
      return (body, ownSlot)
    }
    noteEnd()
  }

  private func finishWithoutThread() {
    promise.end(onThread: false)
    noteEnd()
  }

  private func noteEnd() {
    endWord.store(1, ordering: .releasing)
    endWord.futexWake(.max)
  }

  /// Waits until the thread has finished.
  ///
  /// Its work is done then, its loop has ended, and its object can go.
  ///
  /// - Throws: ``ThreadError/joinsItself(thread:)``, ``ThreadError/notStarted(thread:)``, or
  ///   ``ThreadError/wouldDeadlock(cycle:)`` if the thread waits for the calling one.
  public func join() throws(ThreadError) {
    try join(until: .never)
  }

  /// Waits until the thread has finished, but not longer than a time.
  ///
  /// - Throws: As ``join()``, and ``ThreadError/timedOut``.
  public func join(timeout: Duration) throws(ThreadError) {
    try join(until: .after(timeout))
  }

  private func join(until deadline: Tick) throws(ThreadError) {
    let me = Thread.current
    guard me !== self else { throw .joinsItself(thread: label) }
    guard lock.withLock({ lifecycle.phase != .created }) else { throw .notStarted(thread: label) }
    try me.wait(for: self, until: deadline) { [self] in
      endWord.load(ordering: .acquiring) == 1
    } sleep: {
      endWord.futexWait(while: 0, until: $0)
    }
  }

  /// Waits until the thread has finished, for those for whom nobody waits.
  func waitForEnd() {
    while endWord.load(ordering: .acquiring) == 0 { endWord.futexWait(while: 0) }
  }

  /// Ends the calling thread, which must not be the main one.
  ///
  /// Nothing of the code that called is run any more, and what its frames hold is not released; what the thread itself owns
  /// is: its object, its block, its loop. Work that was given to it, also what is running now, is dropped, and whoever waits
  /// for it gets an error. The corresponding Foundation method is `exit()`.
  ///
  /// - Precondition: The calling thread is not the main one, and does not run a job of an actor or a task, which would never
  ///   come to its end.
  public class func exit() -> Never {
    precondition(!RunLoop.isMainThread, "the main thread cannot exit; the process does")
    pthread_exit(nil)
  }
}

// Settings. Under the lock, while the thread runs.
extension Thread {
  private func applyName() {
    guard let fullName else { return }
    // A character is kept whole or not at all.
    var bytes: [UInt8] = []
    for character in fullName {
      guard bytes.count + character.utf8.count <= 15 else { break }
      bytes += character.utf8
    }
    if let number = writeName(bytes) { refused.append(.name(fullName, number)) }
  }

  /// Writes the name where it can be written for any thread of the process.
  private func writeName(_ bytes: [UInt8]) -> Int32? {
    let file = open("/proc/self/task/\(threadID)/comm", O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { return errno }
    defer { close(file) }
    return write(file, bytes, bytes.count) == bytes.count ? nil : errno
  }

  private func applySettings() {
    if let niceness = settings.niceness {
      let answer = crl_thread_set_niceness(threadID, Int32(clamping: niceness))
      if answer < 0 { refused.append(.niceness(niceness, -answer)) }
    }
    if let processors = settings.processors {
      let numbers = processors.sorted().map { Int32(clamping: $0) }
      let answer = crl_thread_set_affinity(threadID, numbers, Int32(numbers.count))
      if answer < 0 { refused.append(.processors(processors, -answer)) }
    }
  }
}

extension Thread: CustomDebugStringConvertible {
  /// The thread's name and state.
  public var debugDescription: String {
    let (phase, cancelled, id) = lock.withLock { (lifecycle.phase, lifecycle.isCancelled, threadID) }
    return "<\(type(of: self))>{name = \(name ?? "(null)"), id = \(id), \(phase)\(cancelled ? ", cancelled" : "")}"
  }
}
