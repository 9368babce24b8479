// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// One piece of work on its way to a thread: it runs, or is cancelled, or is dropped because the thread ended first.
final class PerformTask: Awaited, @unchecked Sendable {
  // Sendable: the body belongs to whoever has taken the state out of `pending`.

  enum State: UInt32 {
    case pending
    case running
    case ran
    case cancelled
    case dropped

    /// Those that come after `running` are the last.
    var isOver: Bool { rawValue > State.running.rawValue }
  }

  private let word = AwaitedWord(State.pending.rawValue)
  // Not checked for exclusive access, as each says who guards it.
  @exclusivity(unchecked) private var body: BareBlock?
  /// Whether the owner has accepted the work, so that it counts.
  ///
  /// Guarded by the owner's lock.
  @exclusivity(unchecked) var isAccepted = false
  private let lock = Lock()
  /// Who counts what becomes of the work, until it is over: what a thread has left by `exit()` may hold the work for
  /// ever, and is to hold nothing else.
  ///
  /// Guarded by the lock; whoever has claimed the work, and will write it next, reads it without.
  @exclusivity(unchecked) private var owner: ResidentCore?
  /// Who is notified when the work is over.
  ///
  /// Guarded by the lock.
  @exclusivity(unchecked) private var listener: (@Sendable (State) -> Void)?

  /// The work around this one that its thread runs, while it runs this one.
  ///
  /// The thread's own.
  @exclusivity(unchecked) var outer: PerformTask?

  /// Where the work was posted from.
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

  /// Gives up work that has not begun; true for the one who did.
  @discardableResult
  func end(_ state: State) -> Bool {
    guard let state = claim(state) else { return false }
    settle(state)
    return true
  }

  /// Gives up work that has begun and that its thread, which is at its end, has left.
  func abandon() { finish(.dropped) }

  /// Takes work that has not begun out of `pending`, and returns the state that it is in then; nil for all but the
  /// first.
  private func claim(_ state: State) -> State? {
    // Not by a closure: here it would be one of generic code, which takes longer than all else.
    lock.lock()
    let owner = owner
    lock.unlock()
    guard let owner else { return leavePending(for: state) ? state : nil }
    return owner.claim(self, state)
  }

  /// Under the owner's lock, if there is one.
  func leavePending(for state: State) -> Bool {
    word.exchange(State.pending.rawValue, for: state.rawValue)
  }

  /// The one who has claimed the work, and who alone gives up the owner.
  private func finish(_ state: State) {
    owner?.count(self, state)
    settle(state)
  }

  /// Notifies everybody who waits, when the work is over and counted.
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

  /// Calls `body` when the work is over, or now if it is.
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

  /// What a loop keeps of the task: it runs it once, and drops it if it is released without having run it.
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

/// Work that was given to a thread.
public struct PerformToken: Sendable {
  let task: PerformTask
  private let timer: WeakTimer?

  init(task: PerformTask, timer: Timer?) {
    self.task = task
    self.timer = timer.map(WeakTimer.init)
  }

  /// The loop holds the timer: with the loop, the work that waits for a date ends.
  private final class WeakTimer: @unchecked Sendable {
    // Sendable: written once.
    private(set) weak var timer: Timer?

    init(_ timer: Timer) {
      self.timer = timer
    }
  }

  /// What has become of the work.
  public enum State: Sendable, Hashable {
    /// It waits for its thread.
    case pending
    /// It runs.
    case running
    /// It has run.
    case ran
    /// It was cancelled before it ran.
    case cancelled
    /// Its thread ended before it ran, or while it ran.
    case dropped
  }

  /// What has become of the work.
  ///
  /// Can be used from any thread.
  public var state: State {
    switch task.state {
    case .pending: .pending
    case .running: .running
    case .ran: .ran
    case .cancelled: .cancelled
    case .dropped: .dropped
    }
  }

  /// Takes the work back if it has not begun, and releases it.
  ///
  /// - Returns: Whether this call did it. Can be called from any thread.
  @discardableResult
  public func cancel() -> Bool {
    let isCancelled = task.end(.cancelled)
    timer?.timer?.invalidate()
    return isCancelled
  }
}
