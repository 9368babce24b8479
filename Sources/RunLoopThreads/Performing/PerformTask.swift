// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// A unit of work posted to a thread, which runs, is cancelled, or is dropped because the thread ended first.
final class PerformTask: Awaited, @unchecked Sendable {
  // Sendable: only the thread that has moved the state out of `pending` uses the body. The comments of the other
  // variables state what guards them.

  enum State: UInt32 {
    case pending
    case running
    case ran
    case cancelled
    case dropped

    /// The states after `running` are final.
    var isOver: Bool { rawValue > State.running.rawValue }
  }

  private let word = AwaitedWord(State.pending.rawValue)
  // Exclusivity checking is off, because each property documents what guards it.
  @exclusivity(unchecked) private var body: BareBlock?
  /// Whether the owner has accepted the work, so that it counts.
  ///
  /// Guarded by the owner's lock.
  @exclusivity(unchecked) var isAccepted = false
  private let lock = Lock()
  /// Counts the outcome of the work, and is released once the work is over.
  ///
  /// A thread that leaves by `exit()` may leak the work, which must not keep anything else alive.
  ///
  /// Guarded by the lock. The thread that has claimed the work is the next to write it, and reads it without the lock.
  @exclusivity(unchecked) private var owner: ResidentCore?
  /// Called when the work is over; guarded by the lock.
  @exclusivity(unchecked) private var listener: (@Sendable (State) -> Void)?

  /// The task that the thread was already running when it began this one; used only by the thread itself.
  @exclusivity(unchecked) var outer: PerformTask?

  /// The place that posted the work.
  let origin: Origin

  init(owner: ResidentCore?, from origin: Origin, _ body: @escaping @Sendable () -> Void) {
    self.origin = origin
    self.body = BareBlock(body)
    self.owner = owner
  }

  var state: State { State(rawValue: word.value) ?? .dropped }

  var isOver: Bool { word.value > State.running.rawValue }
  private var isPending: Bool { word.value == State.pending.rawValue }

  /// Runs the work, unless it is over.
  func run() {
    guard let state = claim(.running) else { return }
    guard state == .running else { return settle(state) }
    Thread.withCurrent { $0.noteBegun(self) }
    let words = body?.words
    words?.call()
    Thread.withCurrent { $0.noteEnded(self) }
    finish(.ran)
  }

  /// Ends work that has not begun, and returns whether this call ended it.
  @discardableResult
  func end(_ state: State) -> Bool {
    guard let state = claim(state) else { return false }
    settle(state)
    return true
  }

  /// Drops work that its thread began but will never finish, because the thread is ending.
  func abandon() { finish(.dropped) }

  /// Moves pending work to another state and returns that state, or nil if the work is no longer pending.
  private func claim(_ state: State) -> State? {
    // Locks without a closure, because a closure in generic code would dominate the cost of this function.
    lock.lock()
    let owner = owner
    lock.unlock()
    guard let owner else { return leavePending(for: state) ? state : nil }
    return owner.claim(self, state)
  }

  /// Requires the owner's lock, if there is an owner.
  func leavePending(for state: State) -> Bool {
    word.exchange(State.pending.rawValue, for: state.rawValue)
  }

  /// Called only by the thread that has claimed the work; nothing else releases the owner.
  private func finish(_ state: State) {
    owner?.count(self, state)
    settle(state)
  }

  /// Wakes all waiters; called when the work is over and has been counted.
  func settle(_ state: State) {
    body = nil
    word.finish(state.rawValue)
    lock.lock()
    let (listener, owner) = (listener, owner)
    self.listener = nil
    self.owner = nil
    lock.unlock()
    listener?(state)
    withExtendedLifetime(owner) {}
  }

  /// Calls `body` when the work is over, immediately if it already is.
  func whenOver(_ body: @escaping @Sendable (State) -> Void) {
    lock.lock()
    let state = state
    if !state.isOver { listener = body }
    lock.unlock()
    if state.isOver { body(state) }
  }

  func wait(until deadline: Tick, by looker: inout Looker) {
    word.wait(until: deadline, by: &looker) { $0 > State.running.rawValue }
  }

  /// A loop's reference to a task, which runs the task once, or drops it if released without running it.
  final class Ticket: Sendable {
    private let task: PerformTask

    init(_ task: PerformTask) {
      self.task = task
    }

    func run() { task.run() }

    deinit {
      if task.isPending { task.end(.dropped) }
    }
  }
}

/// A token for work that was posted to a thread.
public struct PerformToken: Sendable {
  let task: PerformTask
  private let timer: WeakTimer?

  init(task: PerformTask, timer: Timer?) {
    self.task = task
    self.timer = timer.map(WeakTimer.init)
  }

  /// A weak reference to the timer of delayed work; the loop owns the timer, so the work ends with the loop.
  private final class WeakTimer: @unchecked Sendable {
    // Sendable: the weak reference is never written after initialization, and reading it is atomic.
    private(set) weak var timer: Timer?

    init(_ timer: Timer) {
      self.timer = timer
    }
  }

  /// The state of posted work.
  public enum State: Sendable, Hashable {
    /// The work is waiting for its thread.
    case pending
    /// The work is running.
    case running
    /// The work has run.
    case ran
    /// The work was cancelled before it ran.
    case cancelled
    /// The thread ended before the work ran, or while it was running.
    case dropped
  }

  /// The current state of the work; can be used from any thread.
  public var state: State {
    switch task.state {
    case .pending: .pending
    case .running: .running
    case .ran: .ran
    case .cancelled: .cancelled
    case .dropped: .dropped
    }
  }

  /// Cancels the work if it has not begun, and releases its block.
  ///
  /// Can be called from any thread.
  ///
  /// - Returns: `true` if this call cancelled the work.
  @discardableResult
  public func cancel() -> Bool {
    let isCancelled = task.end(.cancelled)
    timer?.timer?.invalidate()
    return isCancelled
  }
}
