// SPDX-License-Identifier: Apache-2.0

/// An executor's job that a loop runs, with its runner.
///
/// Jobs run in the common modes, in order with the blocks, and never in a run nested in a job, which would silently
/// break actor isolation.
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
  // Sendable: the body is written once, before the runner is shared.
  @exclusivity(unchecked) private var body: (@Sendable (UnownedJob) -> Void)?

  package init() {}

  /// Sets the function that runs jobs; must be called once, before the first job.
  package func runs(_ body: @escaping @Sendable (UnownedJob) -> Void) {
    precondition(self.body == nil, "the function that runs an executor's jobs can be set only once")
    self.body = body
  }

  package func run(_ job: LoopJob) { body?(job.job) }
}
