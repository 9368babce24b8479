// SPDX-License-Identifier: Apache-2.0

/// The result of an experiment that was run.
struct Report: Sendable {
  let experiment: any Experiment
  let outcome: Outcome
  /// The messages of the experiment.
  let log: [String]
  /// The real time of the run.
  let duration: Duration

  /// Runs an experiment on a bench.
  ///
  /// An experiment that needs the main thread does not hold on another one.
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
