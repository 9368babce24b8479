// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
public import RunLoopThreads
import Synchronization

/// A time that a test controls: it is frozen while code runs, and moves only when the test moves it.
///
/// The loops on it are real run loops that make the same passes, except that they never wait: the time is set to the
/// next deadline instead. There are three ways to create one:
///
/// - ``onThisThread(realTimeLimit:_:)`` puts a loop on it on the test's own thread, and ``asMain(realTimeLimit:_:)``
///   also makes that loop `RunLoop.main`. The test moves the time with ``advance(by:inMode:)`` and the related
///   methods.
/// - ``onResidentThread(asMain:realTimeLimit:_:)`` runs an `async` body on a resident thread. The time moves by itself
///   whenever every task waits.
/// - ``init(realTimeLimit:)`` creates one for the test's own threads, created with `ResidentThread(name:on:)`.
///
/// The time begins at zero, and the wall clock at the beginning of 2001. `schedule(in:)`,
/// `Timer(timeInterval:repeats:block:)` and `RunLoop.now` use them. Instants read from `SuspendingClock` are real and
/// have no meaning here.
///
/// Members can be called from any thread, unless documented otherwise.
public final class VirtualTime: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock.

  let timeline: Timeline
  /// The activity of the loops on this time.
  public let log: VirtualTimeLog
  /// The thread without a loop that owns the time, if there is one.
  let owner: Timeline.Sleeper?
  let isOwnerMoving = Atomic<Bool>(false)
  private let lock = Lock()
  private var members: [Member] = []
  private var whenFailed: [@Sendable (VirtualTimeError) -> Void] = []
  private weak var bodysThread: ResidentThread?

  /// Creates a time for resident threads, which moves only within calls such as ``advance(by:inMode:)``.
  ///
  /// - Parameter realTimeLimit: How long in real time such a call waits for threads to sleep, and how long all threads
  ///   may sleep while nothing is due, before that is an error.
  public convenience init(realTimeLimit: Duration = .seconds(10)) {
    self.init(realTimeLimit: realTimeLimit, hasOwner: true)
  }

  init(realTimeLimit: Duration, hasOwner: Bool) {
    let timeline = Timeline(realTimeLimit: realTimeLimit)
    self.timeline = timeline
    log = VirtualTimeLog { timeline.now }
    owner = hasOwner ? timeline.join(name: "the test's thread", isOwner: true) : nil
  }
}

// The current time.
extension VirtualTime {
  /// The virtual time that has passed since the beginning.
  public var elapsed: Duration { .nanoseconds(timeline.now.nanoseconds) }

  /// The current instant, which is `RunLoop.now` of the loops on this time.
  public var now: SuspendingClock.Instant { timeline.now.instant }

  /// Lets a duration pass without running anything, as a computation would.
  ///
  /// Use it in call-outs and in the actions of ``at(_:do:)``. A negative duration counts as zero.
  public func spend(_ duration: Duration) { timeline.spend(duration) }

  /// Moves the wall clock forward or back, as an administrator might, without affecting the loops' clock.
  public func setWallClock(by duration: Duration) { timeline.setWallClock(by: duration) }
}

// Scripted actions.
extension VirtualTime {
  /// Runs an action at a time since the beginning, as if from another thread.
  ///
  /// The action runs while every loop sleeps across that time, on the thread that fell asleep last. It may use the
  /// loops like any other thread, but must not run them. Actions with the same time run in the order in which they
  /// were added, before timers of that time. If the time has passed, the action runs when every loop sleeps next.
  ///
  /// - Complexity: O(n) in the number of pending actions.
  public func at(_ time: Duration, do action: @escaping @Sendable () -> Void) {
    timeline.add(at: Tick(nanoseconds: max(0, Int64(saturating: time))), name: "an action of the test", action)
  }

  /// Runs an action whenever every loop sleeps and nothing is due.
  ///
  /// The action has to wake one of them.
  ///
  /// Without it, such a sleep lasts until another thread ends it or the limit of real time is reached.
  public func whenNothingIsDue(do action: @escaping @Sendable () -> Void) { timeline.setWhenNothingIsDue(action) }

  /// Holds the time while a body waits for something real, such as another thread, a process or a server.
  ///
  /// Otherwise, a pending time-out would fire immediately.
  public func standStill<Value>(
    isolation: isolated (any Actor)? = #isolation, while body: () async throws -> Value
  ) async rethrows -> Value {
    timeline.hold()
    defer { timeline.release() }
    return try await body()
  }
}

// The loops on this time.
extension VirtualTime {
  /// A loop on this time.
  struct Member: Sendable {
    let keeper: LoopKeeper
    /// Ends the loop's runs when the time stops permanently.
    let end: @Sendable () -> Void
  }

  /// Creates a loop on this time for a thread.
  ///
  /// - Parameter prefix: The prefix of the loop's entries in the log.
  func makeLoop(sleeper: Timeline.Sleeper, prefix: String, servesMainQueue: Bool = false) -> (RunLoop, LoopKeeper) {
    let keeper = LoopKeeper(self, sleeper)
    let loop = RunLoop.make(timekeeper: keeper, servesMainQueue: servesMainQueue)
    keeper.loop = loop
    let log = log
    loop.setTraceHook { [unowned keeper] event in
      log.record(event, prefix: prefix)
      keeper.note(event)
    }
    return (loop, keeper)
  }

  func add(_ keeper: LoopKeeper, end: @escaping @Sendable () -> Void) {
    lock.withLock { members.append(Member(keeper: keeper, end: end)) }
  }

  var allMembers: [Member] { lock.withLock { members } }

  /// The timekeeper of the calling thread's loop, if that loop is on this time.
  var callersKeeper: LoopKeeper? {
    guard let loop = RunLoop.currentIfMade else { return nil }
    return allMembers.first { $0.keeper.loop === loop }?.keeper
  }

  /// The thread that runs the body of ``onResidentThread(asMain:realTimeLimit:_:)``, or nil for other times.
  ///
  /// Use it as the preferred executor of tasks and as the executor of actors.
  public var thread: ResidentThread? { lock.withLock { bodysThread } }

  /// Sets the thread of a body, and clears the log once that thread has slept, so the body begins at a fixed point of
  /// a pass.
  func begin(on thread: ResidentThread, _ caller: Timeline.Sleeper) {
    lock.withLock { bodysThread = thread }
    try? wait(caller, until: .distantPast) { $0() }
    log.clear()
  }

  /// Calls a closure when the time stops permanently, immediately if it already has.
  func whenFailed(_ body: @escaping @Sendable (VirtualTimeError) -> Void) {
    lock.withLock { whenFailed.append(body) }
    if let failure = timeline.failure { fail(with: failure) }
  }

  /// Stops the time permanently and lets the runs of all its loops return.
  func fail(_ error: VirtualTimeError) { if timeline.fail(error) { fail(with: error) } }

  private func fail(with error: VirtualTimeError) {
    lock.lock()
    let members = members
    let listeners = whenFailed
    whenFailed = []
    lock.unlock()
    for listener in listeners { listener(error) }
    for member in members { member.end() }
    timeline.wakeAll()
  }
}
