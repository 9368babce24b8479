// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// A thread with a name, a state, and a run loop to which work can be handed.
///
/// Make one with a block, or subclass it and override ``main()``. Only the thread holds the object while it runs: the
/// object ends with the last reference after the thread has finished. ``current`` also exists for threads that were
/// made by other means.
///
/// The corresponding Foundation class is `Thread`.
open class Thread: @unchecked Sendable, Hashable {
  // Sendable: the variables are guarded by the lock, except those whose comment says otherwise. A subclass guards its
  // own.

  let lock = ThreadLock()
  final var lifecycle: ThreadLifecycle
  final var settings = ThreadSettings()
  final var attachments = ThreadAttachments()
  final var failedStart: ThreadError?
  final var threadID: Int32 = 0
  final var body: BareBlock?
  private var hasRunBody = false
  /// The innermost item of work that the thread runs, which refers to the one around it.
  ///
  /// Used by the thread itself only.
  @exclusivity(unchecked) final var running: PerformTask?
  /// Whether the thread's end has been announced; it is announced once, even if an observer of it leaves by ``exit()``.
  ///
  /// Used by the thread itself only.
  final var hasAnnouncedEnd = false
  /// Where the thread's loop can be found, by other threads too.
  let promise: LoopPromise
  /// The thread that this thread waits for.
  let waiting = WaitRecord()
  /// Notes that the thread has finished.
  let ending = ThreadEnd()
  /// Whether it is the main thread's object, whatever a subclass says.
  let isMain: Bool
  /// Whether ``start()`` makes the thread; otherwise it was made by other means.
  let wasStartedHere: Bool
  /// The process in which the object was made: a fork copies the object, and not the thread.
  let generation = ForkGeneration.current

  /// Makes a thread that has not been started and runs ``main()``.
  public init() {
    lifecycle = ThreadLifecycle()
    promise = LoopPromise()
    isMain = false
    wasStartedHere = true
  }

  /// Makes a thread that has not been started and runs a block.
  ///
  /// The block is released when it has returned.
  public init(block: @escaping @Sendable () -> Void) {
    lifecycle = ThreadLifecycle()
    promise = LoopPromise()
    isMain = false
    wasStartedHere = true
    body = BareBlock(block)
  }

  /// Makes a thread that has not been started, runs ``main()``, and has an existing loop.
  package init(loop: RunLoop) {
    lifecycle = ThreadLifecycle()
    promise = LoopPromise(loop)
    isMain = false
    wasStartedHere = true
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
    self.threadID = threadID
    self.isMain = isMain
    self.wasStartedHere = false
    self.promise = promise
    settings.adopt(threadID)
  }

  /// Makes an object for the rest of a thread whose own object has ended.
  init(endedThread threadID: Int32) {
    lifecycle = .ended
    self.threadID = threadID
    isMain = false
    wasStartedHere = false
    promise = LoopPromise()
    promise.end(onThread: false)
    ending.note()
  }

  /// Work that was handed to a thread that has never been started ends with its object: blocks are dropped and counted,
  /// and items leave the loop, with the corresponding call-outs, on the thread that releases the last reference.
  deinit {
    if hasNotStarted { finishWithoutThread() }
  }

  /// Does the thread's work, on the thread.
  ///
  /// It runs the block that the thread was made with; a subclass overrides it.
  open func main() {
    // No frame holds the block: a thread that leaves by `exit()` releases it at its end.
    guard let words = beginBody() else { return }
    words.call()
    // Released outside the lock.
    _ = lock.withLock { body.take() }
  }

  /// The last work on the thread before its loop ends, even after ``exit()``.
  func finishWork() {}

  /// The keeper that takes the work that is handed to the thread and counts it, if there is one.
  var keeper: ResidentCore? { nil }

  /// The block, for the first caller.
  private func beginBody() -> BareBlock.Words? {
    lock.withLock {
      guard !hasRunBody else { return nil }
      hasRunBody = true
      return body?.words
    }
  }

  /// Starts the thread.
  ///
  /// It never throws: if the thread cannot be started, it is finished, and ``ThreadMembers/startError`` says why.
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
  /// The thread's own code has to check ``isCancelled``. A thread that is cancelled before it is started does not
  /// start. Can be called from any thread. The corresponding Foundation method is `cancel()`.
  open func cancel() {
    lock.withLock { lifecycle.cancel() }
  }

  /// Whether the thread has begun and not finished.
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
  /// The kernel keeps as many whole characters of it as fit into 15 bytes, for tools outside. Can be used from any
  /// thread, before or after the start. The corresponding Foundation property is `name`.
  open var name: String? {
    get { lock.withLock { settings.name } }
    set { lock.withLock { settings.setName(newValue) } }
  }

  /// The bytes of the thread's stack; zero means the system's usual size.
  ///
  /// It takes effect at the start; less than the system's minimum counts as the minimum. Can be used from any thread.
  /// The corresponding Foundation property is `stackSize`.
  open var stackSize: Int {
    get { lock.withLock { settings.configuration.stackSize } }
    set { lock.withLock { settings.setStackSize(newValue) } }
  }

  /// Whether both are the same, as ``isEqual(_:)`` says.
  public static func == (left: Thread, right: Thread) -> Bool { left.isEqual(right) }

  /// Hashes ``hash``.
  public func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  /// A human-readable description of the thread's state.
  ///
  /// Can be used from any thread. The corresponding Foundation property is `NSObject.description`.
  open var description: String { debugDescription }

  /// A number that is the same for the same thread.
  ///
  /// A subclass that overrides ``isEqual(_:)`` has to override this too: equal objects have equal numbers. The
  /// corresponding Foundation property is `NSObject.hash`.
  open var hash: Int { ObjectIdentifier(self).hashValue }

  /// The same number as ``hash``.
  public var hashValue: Int { hash }

  /// Whether `object` is this thread.
  ///
  /// The corresponding Foundation method is `NSObject.isEqual(_:)`.
  open func isEqual(_ object: Any?) -> Bool { object as AnyObject? === self }
}

/// The members of a thread that Foundation's thread does not have.
///
/// A subclass may have members of the same names; code that uses the subclass as a ``Thread`` still gets these. Every
/// thread conforms.
public protocol ThreadMembers: Thread {}

extension Thread: ThreadMembers {}

// The thread's state and settings, from any thread.
extension ThreadMembers {
  /// The reason why the thread could not be started, if ``Thread/start()`` was called and failed.
  public var startError: ThreadError? { lock.withLock { failedStart } }

  /// The settings of the thread that the system has rejected, and why.
  ///
  /// A rejected setting leaves the thread as it was. The thread runs all the same.
  public var rejections: [Thread.Rejection] { lock.withLock { settings.rejected } }

  /// Stack, niceness, processors and timer slack.
  ///
  /// Niceness and processors may be changed while the thread runs.
  public var configuration: Thread.Configuration {
    get { lock.withLock { settings.configuration } }
    set { lock.withLock { settings.setConfiguration(newValue) } }
  }

  /// The thread's run loop, which is made now if needed; nil once the thread has ended.
  ///
  /// Can be used from any thread.
  ///
  /// Blocks that are posted to it before the thread runs it wait until then.
  public var runLoop: RunLoop? { promise.loop }
}

extension Thread {
  /// Whether ``start()`` has not been called.
  final var hasNotStarted: Bool { lock.withLock { lifecycle.phase == .created } }

  /// Sets the niceness and leaves the other settings as they are.
  package final func setNiceness(_ niceness: Int) { lock.withLock { settings.setNiceness(niceness) } }

  /// A number that represents the quality of service, kept for a layer above that knows its names.
  package final var quality: Int? {
    get { lock.withLock { settings.quality } }
    set { lock.withLock { settings.quality = newValue } }
  }

  /// The thread's object of a type, made now if there is none, for code that builds on threads.
  ///
  /// It is released at the thread's end, on the thread, as the last step before other threads are notified of the end.
  /// If several threads ask first, all get the same object; `make` runs under no lock, and an object that it makes in
  /// vain is released. Can be called from any thread.
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

  /// The thread's object of a type, if there is one.
  package final func attachment<Object: AnyObject & Sendable>(_ type: Object.Type = Object.self) -> Object? {
    lock.withLock { attachments.object(type) }
  }

  /// The name, or a text that replaces it in messages.
  final var label: String {
    let (name, id) = lock.withLock { (settings.name, threadID) }
    if let name, !name.isEmpty { return "thread \"\(name)\"" }
    if isMain { return "the main thread" }
    return id == 0 ? "a thread without a name" : "thread \(id)"
  }

  /// The name and the state, as they are in a description.
  final var summary: String {
    let (name, phase, isCancelled, id) = lock.withLock {
      (settings.name, lifecycle.phase, lifecycle.isCancelled, threadID)
    }
    return "name = \(name ?? "(null)"), id = \(id), \(phase)\(isCancelled ? ", cancelled" : "")"
  }
}
