// SPDX-License-Identifier: Apache-2.0

/// The lifecycle of a resident thread, as a state machine.
struct ResidentLifecycle: Hashable, Sendable {
  private(set) var state = ResidentThread.State.running

  enum StopAction: Hashable, Sendable {
    /// A stop was already requested.
    case nothing
    /// The thread stops accepting work and ends.
    case stop
    /// Draining is cut short, and the remaining work is cancelled.
    case escalate
  }

  /// Whether new work is accepted.
  var takesWork: Bool { state == .running }

  mutating func stop(_ policy: ResidentThread.StopPolicy) -> StopAction {
    switch (state, policy) {
    case (.running, .afterPendingWork):
      state = .draining
      return .stop
    case (.running, .immediately):
      state = .stopping
      return .stop
    case (.draining, .immediately):
      state = .stopping
      return .escalate
    case (.draining, .afterPendingWork), (.stopping, _), (.finished, _): return .nothing
    }
  }

  /// Marks the thread as finished.
  ///
  /// A thread whose loop ended for another reason was not stopped before.
  mutating func finish() {
    precondition(state != .finished, "a resident thread finished twice")
    state = .finished
  }
}

extension ResidentThread {
  /// The state of a resident thread.
  public enum State: Sendable, Hashable {
    /// The thread accepts work.
    case running
    /// The thread rejects new work and runs the work it has accepted.
    case draining
    /// The thread rejects new work and cancels the work it has accepted.
    case stopping
    /// The thread has ended.
    case finished
  }

  /// A policy for accepted work when the thread is stopped.
  public enum StopPolicy: Sendable, Hashable {
    /// Runs all accepted work, in every mode and in order, and cancels delayed work that is not due.
    ///
    /// Jobs of actors and tasks run too, as do the jobs that they enqueue, within the thread's ``DrainLimits``.
    case afterPendingWork
    /// Lets the current call-out finish, and cancels everything else.
    case immediately
  }

  /// The counts of the work that was posted to a resident thread, by outcome.
  public struct StopReport: Sendable, Hashable {
    /// The number of work items that ran.
    public internal(set) var completedCount = 0
    /// The number of work items that were cancelled, by their token or by the stop.
    public internal(set) var cancelledCount = 0
    /// The number of work items that were dropped because the thread had ended.
    public internal(set) var droppedCount = 0
    /// The number of work items that were rejected because the thread was stopping or had ended.
    public internal(set) var rejectedCount = 0
    /// The number of actor and task jobs that the thread ran.
    ///
    /// A task or an actor call consists of one or more jobs, split at its suspension points.
    public internal(set) var jobCount = 0
    /// The number of actor and task jobs that the thread did not run and that run elsewhere.
    ///
    /// They were left over when the thread stopped draining, or arrived later.
    public internal(set) var lateJobCount = 0
    /// The number of timers left in the loop.
    public internal(set) var remainingTimerCount = 0
    /// The number of sources, ports and descriptor sources left in the loop.
    public internal(set) var remainingSourceCount = 0
  }
}

extension ResidentThread {
  /// Limits on how long the jobs of actors and tasks may delay the end of a thread stopped with `afterPendingWork`.
  ///
  /// Work accepted before the stop always runs. A job may enqueue another, as each step of a task does, and this may
  /// never end. The thread therefore runs jobs in rounds, each of which runs the jobs pending when it begins. Draining
  /// ends when no jobs are left or when either limit is reached. Remaining jobs run serially on a Dispatch queue after
  /// the thread has ended, and ``StopReport/lateJobCount`` counts them.
  public struct DrainLimits: Sendable, Hashable {
    /// The maximum number of rounds.
    ///
    /// The default is 1000; zero or less means none.
    public var rounds: Int
    /// The maximum total time of the rounds.
    ///
    /// The default is one second; zero or less means none.
    ///
    /// A job that has begun is always finished.
    public var time: Duration

    /// Creates drain limits, by default 1000 rounds and one second.
    public init(rounds: Int = 1000, time: Duration = .seconds(1)) {
      self.rounds = rounds
      self.time = time
    }
  }
}
