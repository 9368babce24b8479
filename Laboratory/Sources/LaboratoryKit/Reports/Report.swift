// SPDX-License-Identifier: Apache-2.0

/// An experiment that has been run.
struct Report: Sendable {
  let experiment: any Experiment
  let outcome: Outcome
  /// What the experiment said while it ran.
  let log: [String]
  /// The real time that it took.
  let duration: Duration

  /// Runs an experiment on a bench.
  ///
  /// One that needs the main thread does not hold on another.
  init(of experiment: any Experiment, on bench: Bench = Bench()) {
    var outcome = Outcome()
    self.duration = ContinuousClock().measure {
      if experiment.needsMainThread, !Bench.isOnMainThread {
        outcome.observe("the thread that runs the experiment", "not the main thread", requires: "the main thread")
      } else {
        outcome = experiment.run(on: bench)
      }
    }
    self.experiment = experiment
    self.outcome = outcome
    self.log = bench.log.lines
  }
}
