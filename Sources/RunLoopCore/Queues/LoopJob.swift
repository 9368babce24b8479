// SPDX-License-Identifier: Apache-2.0

/// A job of an executor that a loop serves, and how it is run.
///
/// Jobs are served in the common modes, in their place among the blocks, and never by a run that is nested in a job:
/// that would silently break the isolation of actors.
package struct LoopJob: Sendable {
  package let job: UnownedJob
  package let runner: LoopJobRunner

  package init(_ job: UnownedJob, _ runner: LoopJobRunner) {
    self.job = job
    self.runner = runner
  }
}

/// Runs the jobs of one executor.
package final class LoopJobRunner: @unchecked Sendable {
  // Sendable: the body is written once, before anybody else has the runner.
  @exclusivity(unchecked) private var body: (@Sendable (UnownedJob) -> Void)?

  package init() {}

  /// Sets how jobs are run; called once, before the first job.
  package func runs(_ body: @escaping @Sendable (UnownedJob) -> Void) {
    precondition(self.body == nil, "an executor's way to run jobs is said once")
    self.body = body
  }

  /// Runs a job on the calling thread.
  package func run(_ job: LoopJob) { body?(job.job) }
}
