import RunLoopCore
import Synchronization

/// One piece of work on its way to a thread: it runs, or is cancelled, or is dropped because the thread ended first.
final class PerformTask: @unchecked Sendable {
  // Sendable: the body belongs to whoever has taken the state out of `pending`.

  enum State: UInt32 {
    case pending
    case running
    case ran
    case cancelled
    case dropped

    var isOver: Bool { self != .pending && self != .running }
  }

  private let word = Atomic<UInt32>(State.pending.rawValue)
  private var body: (@Sendable () -> Void)?
  /// Who counts what becomes of the work.
  private let owner: ResidentCore?
  /// Whether the owner has accepted the work, so that it counts.
  ///
  /// Guarded by the owner's lock.
  var isAccepted = false
  private let lock = Lock()
  /// Who is told when the work is over.
  ///
  /// Guarded by the lock.
  private var listener: (@Sendable (State) -> Void)?

  init(owner: ResidentCore? = nil, _ body: @escaping @Sendable () -> Void) {
    self.body = body
    self.owner = owner
  }

  var state: State { State(rawValue: word.load(ordering: .acquiring)) ?? .dropped }

  /// Runs the work, unless it is over.
  func run() {
    guard claim(.running) else { return }
    body?()
    body = nil
    finish(.ran)
  }

  /// Gives up work that has not begun; true for the one who did.
  @discardableResult
  func end(_ state: State) -> Bool {
    guard claim(state) else { return false }
    let released = body
    body = nil
    withExtendedLifetime(released) {}
    finish(state)
    return true
  }

  /// The loop has let go of the work without running it.
  fileprivate func drop() {
    end(owner?.state == .stopping ? .cancelled : .dropped)
  }

  private func claim(_ state: State) -> Bool {
    word.compareExchange(
      expected: State.pending.rawValue, desired: state.rawValue, ordering: .acquiringAndReleasing
    ).exchanged
  }

  private func finish(_ state: State) {
    word.store(state.rawValue, ordering: .releasing)
    word.futexWake(.max)
    owner?.count(self)
    let listener = lock.withLock {
      defer { self.listener = nil }
      return self.listener
    }
    listener?(state)
  }

  /// Calls `body` when the work is over, or now if it is.
  func whenOver(_ body: @escaping @Sendable (State) -> Void) {
    lock.lock()
    let state = state
    if !state.isOver { listener = body }
    lock.unlock()
    if state.isOver { body(state) }
  }

  /// Sleeps until the state may have changed from `state`.
  func sleep(while state: State, until deadline: Tick) {
    word.futexWait(while: state.rawValue, until: deadline)
  }

  /// A closure that runs the task once, and drops it if it is released without having been run.
  var ticket: @Sendable () -> Void {
    let ticket = Ticket(self)
    return { ticket.task.run() }
  }

  private final class Ticket: Sendable {
    let task: PerformTask

    init(_ task: PerformTask) {
      self.task = task
    }

    deinit {
      task.drop()
    }
  }
}

/// Work that was given to a thread.
public struct PerformToken: Sendable {
  let task: PerformTask
  let timer: Timer?

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
    /// Its thread ended before it ran.
    case dropped
  }

  /// What has become of the work.
  ///
  /// Any thread.
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
  /// - Returns: Whether this call did it. Any thread.
  @discardableResult
  public func cancel() -> Bool {
    let isCancelled = task.end(.cancelled)
    timer?.invalidate()
    return isCancelled
  }
}
