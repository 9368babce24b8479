// SPDX-License-Identifier: Apache-2.0

/// The lifecycle of a resident thread, as a value.
struct ResidentLifecycle: Hashable, Sendable {
  private(set) var state = ResidentThread.State.running

  enum StopAction: Hashable, Sendable {
    /// The thread has been notified before.
    case nothing
    /// The thread takes no more work, and ends.
    case stop
    /// The work that was to run first is given up.
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
    /// It takes no more work, and runs the work that it has accepted.
    case draining
    /// It takes no more work, and cancels the work that it has accepted.
    case stopping
    /// It has ended.
    case finished
  }

  /// What happens to accepted work when the thread is stopped.
  public enum StopPolicy: Sendable, Hashable {
    /// Everything that was accepted runs, in every mode and in order; delayed work that is not due is cancelled. Jobs
    /// of actors and tasks run too, and so do the jobs that they leave behind, within the thread's ``DrainLimits``.
    case afterPendingWork
    /// A running call-out finishes; everything else is cancelled.
    case immediately
  }

  /// What a resident thread has done with the work that was handed to it.
  public struct StopReport: Sendable, Hashable {
    /// Work that ran.
    public internal(set) var completedCount = 0
    /// Work that was cancelled, by its token or by the stop.
    public internal(set) var cancelledCount = 0
    /// Work that was dropped because the thread had ended.
    public internal(set) var droppedCount = 0
    /// Work that was rejected because the thread was stopping or had ended.
    public internal(set) var rejectedCount = 0
    /// Jobs of actors and tasks that the thread has run; a task or a call of an actor is one or more jobs, split where
    /// it waits.
    public internal(set) var jobCount = 0
    /// Jobs of actors and tasks that the thread has not run, and that run elsewhere.
    ///
    /// They were left when the thread stopped draining, or arrived after that.
    public internal(set) var lateJobCount = 0
    /// Timers that were left in the loop.
    public internal(set) var remainingTimerCount = 0
    /// Sources, ports and descriptor sources that were left in the loop.
    public internal(set) var remainingSourceCount = 0
  }
}

extension ResidentThread {
  /// How much the jobs of actors and tasks may delay the end of a thread that is stopped after the pending work.
  ///
  /// Work that was accepted before the stop always runs. A job may leave another behind it, as each step of a task
  /// does, and so on indefinitely. The thread runs such jobs in rounds; each round runs all jobs that are there when it
  /// begins. The rounds end when there are no more jobs, or when the number of rounds or the time is used up. The
  /// remaining jobs are late: they run elsewhere, one after the other, when the thread has ended, and
  /// ``StopReport/lateJobCount`` counts them.
  public struct DrainLimits: Sendable, Hashable {
    /// How many rounds of jobs the thread runs; zero or less means none.
    public var rounds: Int
    /// How long the rounds may take together; a job that has begun is finished.
    ///
    /// Zero or less means no time.
    public var time: Duration

    /// Makes limits, by default 1000 rounds and a second.
    public init(rounds: Int = 1000, time: Duration = .seconds(1)) {
      self.rounds = rounds
      self.time = time
    }
  }
}
