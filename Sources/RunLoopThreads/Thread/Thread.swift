// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// A thread with a name, a state, and a run loop to which work can be posted.
///
/// Create one with a block, or subclass it and override ``main()``. While it runs, the thread retains its object,
/// which is released with its last reference after the thread has finished. ``current`` also works on threads that
/// other code created.
///
/// The corresponding Foundation class is `Thread`.
open class Thread: @unchecked Sendable, Hashable {
  // Sendable: the variables are guarded by the lock, except where a comment says otherwise. Subclasses guard their
  // own.

  let lock = ThreadLock()
  final var lifecycle: ThreadLifecycle
  final var settings = ThreadSettings()
  final var attachments = ThreadAttachments()
  final var failedStart: ThreadError?
  final var threadID: Int32 = 0
  final var body: BareBlock?
  private var hasRunBody = false
  /// The innermost work item that the thread is running, which links to the one around it.
  ///
  /// Used only by the thread itself.
  @exclusivity(unchecked) final var running: PerformTask?
  /// Whether the end of the thread has been announced, which happens once, even if an observer leaves by ``exit()``.
  ///
  /// Used only by the thread itself.
  final var hasAnnouncedEnd = false
  /// Through this, the thread and other threads find its loop.
  let promise: LoopPromise
  /// The thread that this thread waits for.
  let waiting = WaitRecord()
  /// Signals that the thread has finished.
  let ending = ThreadEnd()
  /// Whether this is the main thread's object, regardless of what a subclass returns.
  let isMain: Bool
  /// Whether ``start()`` creates the thread; false for threads created by other code.
  let wasStartedHere: Bool
  /// The process in which the object was created; a fork copies the object but not the thread.
  let generation = ForkGeneration.current

  /// Creates a thread that runs ``main()`` when started.
  public init() {
    lifecycle = ThreadLifecycle()
    promise = LoopPromise()
    isMain = false
    wasStartedHere = true
  }

  /// Creates a thread that runs a block when started.
  ///
  /// The block is released when it returns.
  public init(block: @escaping @Sendable () -> Void) {
    lifecycle = ThreadLifecycle()
    promise = LoopPromise()
    isMain = false
    wasStartedHere = true
    body = BareBlock(block)
  }

  /// Creates a thread with an existing loop that runs ``main()`` when started.
  package init(loop: RunLoop) {
    lifecycle = ThreadLifecycle()
    promise = LoopPromise(loop)
    isMain = false
    wasStartedHere = true
  }

  /// Creates a thread with a name and a configuration that runs a block when started.
  public convenience init(
    name: String?, configuration: Configuration, block: @escaping @Sendable () -> Void
  ) {
    self.init(block: block)
    self.name = name
    self.configuration = configuration
  }

  /// Creates the object of a thread that is already running.
  init(foreign threadID: Int32, isMain: Bool, promise: LoopPromise) {
    lifecycle = .foreign
    self.threadID = threadID
    self.isMain = isMain
    self.wasStartedHere = false
    self.promise = promise
    settings.adopt(threadID)
  }

  /// Creates a temporary object for a thread whose own object has ended.
  init(endedThread threadID: Int32) {
    lifecycle = .ended
    self.threadID = threadID
    isMain = false
    wasStartedHere = false
    promise = LoopPromise()
    promise.end(onThread: false)
    ending.note()
  }

  /// If the thread was never started, drops and counts the blocks posted to it, and removes the items of its loop with
  /// the corresponding call-outs, on the thread that releases the last reference.
  deinit {
    if hasNotStarted { finishWithoutThread() }
  }

  /// The body of the thread, called on the thread.
  ///
  /// The default implementation runs the block passed to the initializer. Subclasses can override it.
  open func main() {
    // No frame retains the block, so a thread that leaves by `exit()` still releases it at its end.
    guard let words = beginBody() else { return }
    words.call()
    // Released after unlocking.
    _ = lock.withLock { body.take() }
  }

  /// Runs the last work on the thread before its loop ends, even after ``exit()``.
  func finishWork() {}

  /// The core that accepts and counts the work posted to the thread, if there is one.
  var keeper: ResidentCore? { nil }

  /// The block for the first caller, and nil for later ones.
  private func beginBody() -> BareBlock.Words? {
    lock.withLock {
      guard !hasRunBody else { return nil }
      hasRunBody = true
      return body?.words
    }
  }

  /// Starts the thread.
  ///
  /// This does not throw: if the thread cannot be started, it is marked as finished and ``ThreadMembers/startError``
  /// is set.
  ///
  /// Starting a thread again only sets ``ThreadMembers/startError``. Can be called from any thread. The corresponding
  /// Foundation method is `start()`.
  open func start() {
    do {
      try tryStart()
    } catch {
      lock.withLock { failedStart = error }
    }
  }

  /// Marks the thread as cancelled.
  ///
  /// The thread's own code must check ``isCancelled``.
  ///
  /// A thread that is cancelled before it is started never runs. Can be called from any thread. The corresponding
  /// Foundation method is `cancel()`.
  open func cancel() {
    lock.withLock { lifecycle.cancel() }
  }

  /// Whether the thread has begun and has not finished.
  ///
  /// Can be used from any thread. The corresponding Foundation property is `isExecuting`.
  open var isExecuting: Bool { lock.withLock { lifecycle.phase == .executing } }

  /// Whether the thread has ended, or could not be started.
  ///
  /// Can be used from any thread. The corresponding Foundation property is `isFinished`.
  open var isFinished: Bool { lock.withLock { lifecycle.phase == .finished } }

  /// Whether ``cancel()`` was called.
  ///
  /// Can be used from any thread. The corresponding Foundation property is `isCancelled`.
  open var isCancelled: Bool { lock.withLock { lifecycle.isCancelled } }

  /// Whether this is the main thread.
  ///
  /// Can be used from any thread. The corresponding Foundation property is `isMainThread`.
  open var isMainThread: Bool { isMain || standsInForMain }

  /// The thread's name, of any length.
  ///
  /// The default is `nil`.
  ///
  /// The kernel stores as many whole characters as fit into 15 bytes, which external tools display. Can be used from
  /// any thread, before or after the start. The corresponding Foundation property is `name`.
  open var name: String? {
    get { lock.withLock { settings.name } }
    set { lock.withLock { settings.setName(newValue) } }
  }

  /// The size of the thread's stack in bytes.
  ///
  /// The default is zero, which means the system's default size.
  ///
  /// It takes effect at the start and is rounded up to the system's minimum. Can be used from any thread. The
  /// corresponding Foundation property is `stackSize`.
  open var stackSize: Int {
    get { lock.withLock { settings.configuration.stackSize } }
    set { lock.withLock { settings.setStackSize(newValue) } }
  }

  /// Returns whether two threads are equal according to ``isEqual(_:)``.
  public static func == (left: Thread, right: Thread) -> Bool { left.isEqual(right) }

  /// Hashes ``hash``.
  public func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  /// A human-readable description of the thread's state.
  ///
  /// Can be used from any thread. The corresponding Foundation property is `NSObject.description`.
  open var description: String { debugDescription }

  /// A hash value that is equal for equal threads.
  ///
  /// Subclasses that override ``isEqual(_:)`` must override this too. The corresponding Foundation property is
  /// `NSObject.hash`.
  open var hash: Int { ObjectIdentifier(self).hashValue }

  /// The same value as ``hash``.
  public var hashValue: Int { hash }

  /// Returns whether `object` is this thread.
  ///
  /// The corresponding Foundation method is `NSObject.isEqual(_:)`.
  open func isEqual(_ object: Any?) -> Bool { object as AnyObject? === self }
}

/// The members of a thread that Foundation's `Thread` does not have.
///
/// Every thread conforms. If a subclass declares members with the same names, code that uses it as a ``Thread`` still
/// gets these.
public protocol ThreadMembers: Thread {}

extension Thread: ThreadMembers {}

// The thread's state and settings. These can be used from any thread.
extension ThreadMembers {
  /// The error of ``Thread/start()``, or nil if it was not called or succeeded.
  public var startError: ThreadError? { lock.withLock { failedStart } }

  /// The settings that the system rejected, with the reasons.
  ///
  /// A rejected setting has no effect on the thread, which runs nevertheless.
  public var rejections: [Thread.Rejection] { lock.withLock { settings.rejected } }

  /// The stack size, niceness, processors and timer slack.
  ///
  /// The default is a `Configuration` that changes nothing.
  ///
  /// Niceness and processors can be changed while the thread runs.
  public var configuration: Thread.Configuration {
    get { lock.withLock { settings.configuration } }
    set { lock.withLock { settings.setConfiguration(newValue) } }
  }

  /// The thread's run loop, created on first use.
  ///
  /// Nil once the thread has ended.
  ///
  /// Blocks posted before the thread runs its loop wait until it does. Can be used from any thread.
  public var runLoop: RunLoop? { promise.loop }
}

extension Thread {
  /// Whether the thread has not been started.
  final var hasNotStarted: Bool { lock.withLock { lifecycle.phase == .created } }

  /// Sets the niceness and keeps the other settings.
  package final func setNiceness(_ niceness: Int) { lock.withLock { settings.setNiceness(niceness) } }

  /// A number that represents the quality of service, for a higher layer that knows the names; the default is `nil`.
  package final var quality: Int? {
    get { lock.withLock { settings.quality } }
    set { lock.withLock { settings.quality = newValue } }
  }

  /// Returns the attachment of a type, creating it if necessary, for code that builds on threads.
  ///
  /// Attachments are released on the thread, as the last step before other threads are notified of its end. If several
  /// threads ask first, all of them get the same object. `make` runs without the lock, and an object that lost the
  /// race is released. Can be called from any thread.
  package final func attachment<Object: AnyObject & Sendable>(
    _ type: Object.Type = Object.self, orMake make: () -> Object
  ) -> Object {
    if let object = lock.withLock({ attachments.object(type) }) { return object }
    let made = make()
    return lock.withLock {
      if let earlier = attachments.object(type) { return earlier }
      attachments.insert(made)
      return made
    }
  }

  /// The attachment of a type, if there is one.
  package final func attachment<Object: AnyObject & Sendable>(_ type: Object.Type = Object.self) -> Object? {
    lock.withLock { attachments.object(type) }
  }

  /// The name, or a substitute for it in messages.
  final var label: String {
    let (name, id) = lock.withLock { (settings.name, threadID) }
    if let name, !name.isEmpty { return "thread \"\(name)\"" }
    if isMain { return "the main thread" }
    return id == 0 ? "a thread without a name" : "thread \(id)"
  }

  /// The name and state as shown in descriptions.
  final var summary: String {
    let (name, phase, isCancelled, id) = lock.withLock {
      (settings.name, lifecycle.phase, lifecycle.isCancelled, threadID)
    }
    return "name = \(name ?? "(null)"), id = \(id), \(phase)\(isCancelled ? ", cancelled" : "")"
  }
}
