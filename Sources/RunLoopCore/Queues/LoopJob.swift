/// A job of an executor that a loop serves, and how it is run.
///
/// Jobs are served in the common modes, in their place among the blocks, and never by a run that is nested in a job: the
/// isolation of actors would break in silence.
package struct LoopJob: Sendable {
  package let job: UnownedJob
  package let runner: LoopJobRunner

  package init(_ job: UnownedJob, _ runner: LoopJobRunner) {
    self.job = job
    self.runner = runner
  }
}

/// Runs the jobs of one executor.
package final class LoopJobRunner: Sendable {
  let body: @Sendable (UnownedJob) -> Void

  /// Runs a job on the calling thread.
  package func run(_ job: LoopJob) { body(job.job) }

  package init(_ body: @escaping @Sendable (UnownedJob) -> Void) {
    self.body = body
  }
}
