// SPDX-License-Identifier: Apache-2.0

/// What becomes of a resident thread, as a value.
struct ResidentLifecycle: Hashable, Sendable {
  private(set) var state = ResidentThread.State.running

  enum StopAction: Hashable, Sendable {
    /// It has been notified before.
    case nothing
    /// Take no more work, and end.
    case stop
    /// The work that was to run first is to be given up.
    case escalate
  }

  /// Whether work is accepted.
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

  /// The thread's last step.
  ///
  /// A loop that ended by other means has not been stopped before.
  mutating func finish() {
    precondition(state != .finished, "a resident thread finished twice")
    state = .finished
  }
}

extension ResidentThread {
  /// What a resident thread does with work.
  public enum State: Sendable, Hashable {
    /// It takes work.
    case running
    /// It takes no more work, and runs what it has accepted.
    case draining
    /// It takes no more work, and cancels what it has accepted.
    case stopping
    /// It has ended.
    case finished
  }

  /// What becomes of accepted work when the thread is stopped.
  public enum StopPolicy: Sendable, Hashable {
    /// Everything that was accepted runs, in every mode and in order; delayed work that is not due is cancelled. Jobs
    /// of actors and tasks run with it, and what they leave behind within the thread's ``DrainLimits``.
    case afterPendingWork
    /// The call-out that runs comes to its end; everything else is cancelled.
    case immediately
  }

  /// What a resident thread has done with the work that it was given.
  public struct StopReport: Sendable, Hashable {
    /// Work that ran.
    public var ran = 0
    /// Work that was cancelled, by its token or by the stop.
    public var cancelled = 0
    /// Work that was dropped because the thread had ended.
    public var dropped = 0
    /// Work that was rejected because the thread was stopping or had ended.
    public var refused = 0
    /// Jobs of actors and tasks that the thread has run; a task or a call of an actor is one job or more, cut where it
    /// waits.
    public var jobs = 0
    /// Jobs of actors and tasks that the thread has not run, and that run elsewhere.
    ///
    /// They were left when it stopped draining, or came after that.
    public var lateJobs = 0
    /// Timers that were left in the loop.
    public var timersLeft = 0
    /// Sources, ports and descriptor sources that were left in the loop.
    public var sourcesLeft = 0

    /// Makes a report in which everything is zero.
    public init() {}
  }
}

extension ResidentThread {
  /// How much the jobs of actors and tasks may delay the end of a thread that is stopped after the pending work.
  ///
  /// Work that was accepted before the stop always runs. A job may leave another behind it, as each step of a task
  /// does, and so on indefinitely. The thread runs such jobs in rounds, each of all jobs that are there when it begins,
  /// until there are none, or the rounds or the time are used up. The jobs that are left then are late: they run one
  /// after the other when the thread has ended, elsewhere, and ``StopReport/lateJobs`` counts them.
  public struct DrainLimits: Sendable, Hashable {
    /// How many rounds of jobs the thread runs; zero or less is none.
    public var rounds: Int
    /// How long the rounds may take together; a job that has begun comes to its end.
    ///
    /// Zero or less is no time.
    public var time: Duration

    /// Makes limits: 1000 rounds and a second, if nothing else is said.
    public init(rounds: Int = 1000, time: Duration = .seconds(1)) {
      self.rounds = rounds
      self.time = time
    }
  }
}
