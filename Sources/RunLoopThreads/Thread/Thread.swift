// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// A thread with a name, a state, and a run loop to which work can be given.
///
/// Make one with a block, or subclass it and override ``main()``. The object is held by its thread while that runs, and
/// by nobody else: it ends with the last reference after the thread has finished. ``current`` is also there for threads
/// that were made by other means.
///
/// The corresponding Foundation class is `Thread`.
open class Thread: @unchecked Sendable, Hashable {
  // Sendable: the variables are guarded by the lock, but for those whose comment says otherwise. A subclass guards its
  // own.

  let lock = ThreadLock()
  final var lifecycle: ThreadLifecycle
  final var settings = ThreadSettings()
  final var attachments = ThreadAttachments()
  final var failedStart: ThreadError?
  final var threadID: Int32 = 0
  final var body: BareBlock?
  private var hasRunBody = false
  /// The innermost piece of work that the thread runs, which has the one around it.
  ///
  /// The thread's own.
  @exclusivity(unchecked) final var running: PerformTask?
  /// Whether the thread's end has been announced, which it is once, also if an observer of it leaves by ``exit()``.
  ///
  /// The thread's own.
  final var hasAnnouncedEnd = false
  /// Where the thread's loop is to be found, by others too.
  let promise: LoopPromise
  /// Whom the thread waits for.
  let waiting = WaitRecord()
  /// The thread has finished.
  let ending = ThreadEnd()
  /// Whether it is the main thread's object, whatever a subclass says.
  let isMain: Bool
  /// Whether the thread is one that ``start()`` makes, and not one that was made by other means.
  let wasStartedHere: Bool

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

  /// Makes a thread that has not been started, runs ``main()``, and has a loop that there is already.
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

  /// Makes an object for what is left of a thread whose own has ended.
  init(endedThread threadID: Int32) {
    lifecycle = .ended
    self.threadID = threadID
    isMain = false
    wasStartedHere = false
    promise = LoopPromise()
    promise.end(onThread: false)
    ending.note()
  }

  /// What was given to a thread that has never been started ends with its object: blocks are dropped and counted, and
  /// items leave the loop, with the call-outs that belong to that, on the thread that gives up the last reference.
  deinit {
    if hasNotStarted { finishWithoutThread() }
  }

  /// What the thread does, on it.
  ///
  /// The block that it was made with runs; a subclass overrides this.
  open func main() {
    // No frame holds the block: a thread that leaves by `exit()` releases it at its end.
    guard let words = beginBody() else { return }
    words.call()
    // Released outside the lock.
    _ = lock.withLock { body.take() }
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

  /// Starts the thread.
  ///
  /// It never throws: if the thread cannot be started, it is finished, and ``ThreadMembers/startError`` says why.
  /// Starting a thread again does nothing but set ``ThreadMembers/startError``. Can be called from any thread. The
  /// corresponding Foundation method is `start()`.
  open func start() {
    do {
      try tryStart()
    } catch {
      lock.withLock { failedStart = error }
    }
  }

  /// Marks the thread as cancelled.
  ///
  /// It is for its own code to look at ``isCancelled``. A thread that is cancelled before it is started does not start.
  /// Can be called from any thread. The corresponding Foundation method is `cancel()`.
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

  /// The thread's name, as long as it may be.
  ///
  /// The kernel keeps the first 15 bytes of it, for tools outside. Any thread, before or after the start. The
  /// corresponding Foundation property is `name`.
  open var name: String? {
    get { lock.withLock { settings.name } }
    set { lock.withLock { settings.setName(newValue) } }
  }

  /// The bytes of the thread's stack; zero is the system's usual size.
  ///
  /// It counts at the start; what is less than the system's minimum counts as the minimum. Can be used from any thread.
  /// The corresponding Foundation property is `stackSize`.
  open var stackSize: Int {
    get { lock.withLock { settings.configuration.stackSize } }
    set { lock.withLock { settings.setStackSize(newValue) } }
  }

  /// Whether both are the same, as ``isEqual(_:)`` says.
  public static func == (left: Thread, right: Thread) -> Bool { left.isEqual(right) }

  /// Hashes ``hash``.
  public func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  /// The text for a person: the thread's state.
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

/// What a thread has beside Foundation's members.
///
/// A subclass may have members of the same names: those that are seen through ``Thread`` stay these. Every thread
/// conforms.
public protocol ThreadMembers: Thread {}

extension Thread: ThreadMembers {}

// The thread's state and settings, from any thread.
extension ThreadMembers {
  /// Why the thread could not be started, if ``Thread/start()`` was called and failed.
  public var startError: ThreadError? { lock.withLock { failedStart } }

  /// The settings of the thread that the system has rejected, and why.
  ///
  /// A setting that is rejected leaves the thread as it was. The thread runs all the same.
  public var refusals: [Thread.Refusal] { lock.withLock { settings.refused } }

  /// Stack, niceness and processors.
  ///
  /// Niceness and processors may be changed while the thread runs.
  public var configuration: Thread.Configuration {
    get { lock.withLock { settings.configuration } }
    set { lock.withLock { settings.setConfiguration(newValue) } }
  }

  /// The thread's run loop, made now if need be; nil once the thread has ended.
  ///
  /// Can be used from any thread.
  ///
  /// What is posted to it before the thread runs it waits until then.
  public var runLoop: RunLoop? { promise.loop }
}

extension Thread {
  /// Whether ``start()`` has not been called.
  final var hasNotStarted: Bool { lock.withLock { lifecycle.phase == .created } }

  /// Sets the niceness and leaves the other settings as they are.
  package final func setNiceness(_ niceness: Int) { lock.withLock { settings.setNiceness(niceness) } }

  /// A number that stands for the quality of service, kept for a layer above that knows its names.
  package final var quality: Int? {
    get { lock.withLock { settings.quality } }
    set { lock.withLock { settings.quality = newValue } }
  }

  /// The thread's object of a type, made now if there is none, for whoever builds on threads.
  ///
  /// It is released at the thread's end, on it, as the last step before others hear of the end. Of several threads that
  /// ask first, all get the same; `make` runs under no lock, and what it makes in vain is released. Any thread.
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

  /// The name, or something that stands for it in messages.
  final var label: String {
    let (name, id) = lock.withLock { (settings.name, threadID) }
    if let name, !name.isEmpty { return "thread \"\(name)\"" }
    if isMain { return "the main thread" }
    return id == 0 ? "a thread without a name" : "thread \(id)"
  }

  /// The name and the state, as a description has them.
  final var summary: String {
    let (name, phase, isCancelled, id) = lock.withLock {
      (settings.name, lifecycle.phase, lifecycle.isCancelled, threadID)
    }
    return "name = \(name ?? "(null)"), id = \(id), \(phase)\(isCancelled ? ", cancelled" : "")"
  }
}
