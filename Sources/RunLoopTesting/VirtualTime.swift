// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
public import RunLoopThreads
import Synchronization

/// A time that a test owns: it stands still while code runs, and goes on only as the test says.
///
/// The loops on it are real run loops. They make the same passes, but what they wait for arrives at once: the time is
/// set to the next date instead of being waited for. There are three ways to make one:
///
/// - ``onThisThread(realTimeLimit:_:)`` makes a loop on it for the test's own thread, and ``asMain(realTimeLimit:_:)``
///   lets that loop be `RunLoop.main` too. The test moves the time with ``advance(by:inMode:)`` and its relatives.
/// - ``onResidentThread(asMain:realTimeLimit:_:)`` runs an `async` body on a resident thread. The time moves by itself
///   whenever every task waits.
/// - ``init(realTimeLimit:)`` makes one for threads of the test's own, made with `ResidentThread(name:on:)`.
///
/// The time begins at zero, and so does the wall clock, with the year 2001: `schedule(in:)`,
/// `Timer(timeInterval:repeats:block:)` and `RunLoop.now` count by it. Instants that are read from `SuspendingClock`
/// are real, and mean nothing here.
///
/// Members can be called from any thread if they do not say otherwise.
public final class VirtualTime: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock.

  let timeline: Timeline
  /// What the loops on this time have done.
  public let log: VirtualTimeLog
  /// The thread that owns the time without a loop, if one does.
  let owner: Timeline.Sleeper?
  let isOwnerMoving = Atomic<Bool>(false)
  private let lock = Lock()
  private var members: [Member] = []
  private var whenFailed: [@Sendable (VirtualTimeError) -> Void] = []
  private weak var bodysThread: ResidentThread?

  /// Makes a time for resident threads, which the calling code owns: it moves only within calls such as
  /// ``advance(by:inMode:)``.
  ///
  /// - Parameter realTimeLimit: How long, in real time, one such call waits for threads that do not come to sleep, and
  ///   how long everybody may sleep while nothing is due, before that is an error.
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

// What time it is.
extension VirtualTime {
  /// The time that has passed since the beginning.
  public var elapsed: Duration { .nanoseconds(timeline.now.nanoseconds) }

  /// The instant that the loops on this time read as `RunLoop.now`.
  public var now: SuspendingClock.Instant { timeline.now.instant }

  /// Lets time pass as work of that duration does: nothing is called.
  ///
  /// For call-outs, and for the actions of ``at(_:do:)``. A negative duration counts as zero.
  public func spend(_ duration: Duration) { timeline.spend(duration) }

  /// Sets the wall clock forward or back, as an administrator does; the loops' clock goes on as before.
  public func setWallClock(by duration: Duration) { timeline.setWallClock(by: duration) }
}

// The script.
extension VirtualTime {
  /// Runs an action from outside at a time, counted from the beginning.
  ///
  /// The action runs while every loop sleeps over that time, as another thread would run it, on the thread that was the
  /// last to sleep. It may use the loops as any thread may, and must not run them. Actions of one time run in the order
  /// in which they were added, before timers of that time. If the time has passed, the action runs when every loop
  /// sleeps next.
  ///
  /// - Complexity: O(n) in the actions that wait.
  public func at(_ time: Duration, do action: @escaping @Sendable () -> Void) {
    timeline.add(at: Tick(nanoseconds: max(0, Int64(saturating: time))), name: "an action of the test", action)
  }

  /// Runs an action whenever every loop sleeps and nothing is due; the action is to wake one of them.
  ///
  /// Without it, such a sleep lasts until another thread ends it, or the limit of real time.
  public func whenNothingIsDue(do action: @escaping @Sendable () -> Void) { timeline.setWhenNothingIsDue(action) }

  /// Lets the time stand still while a body waits for something real, such as another thread, a process or a server.
  ///
  /// Otherwise a running time-out would be over at once.
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
    /// Lets the loop's thread go on when the time stands forever.
    let end: @Sendable () -> Void
  }

  /// Makes a loop on this time, for a thread that is to have it.
  ///
  /// - Parameter prefix: What stands before the entries of the loop in the log.
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

  /// Whose loop the calling thread has, if it is on this time.
  var callersKeeper: LoopKeeper? {
    guard let loop = RunLoop.currentIfMade else { return nil }
    return allMembers.first { $0.keeper.loop === loop }?.keeper
  }

  /// The thread on which the body of ``onResidentThread(asMain:realTimeLimit:_:)`` runs, for tasks that should prefer
  /// it and actors that should live on it; nil for a time that was made otherwise.
  public var thread: ResidentThread? { lock.withLock { bodysThread } }

  /// Notes the thread of a body, and begins the log when that thread sleeps for the first time.
  ///
  /// So the body always begins at the same point of a pass.
  func begin(on thread: ResidentThread, _ caller: Timeline.Sleeper) {
    lock.withLock { bodysThread = thread }
    try? wait(caller, until: .distantPast) { $0() }
    log.clear()
  }

  /// Calls a closure when the time stands forever, or now if it does.
  func whenFailed(_ body: @escaping @Sendable (VirtualTimeError) -> Void) {
    lock.withLock { whenFailed.append(body) }
    if let failure = timeline.failure { fail(with: failure) }
  }

  /// Lets the time stand forever, and every loop on it return.
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
