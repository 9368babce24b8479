// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore

/// The instrumented main loop, on real time.
///
/// Can be used from any thread, but the loop must be run on the main thread. As it outlives every experiment, each
/// must remove its items.
struct MainRig: Sendable {
  let loop: RunLoop
  /// The messages of the experiment.
  let log: Record
  /// The number of passes in the runs of this rig.
  let passes = Tally()
  private let mainThread = pthread_self()

  /// The limit for a run.
  ///
  /// Runs end by events. This limit ends them if an event is lost.
  static let patience = Duration.seconds(10)

  /// Must be called on the main thread.
  init(loop: RunLoop, log: Record) {
    self.loop = loop
    self.log = log
  }

  /// The calling thread, as the articles distinguish threads.
  var thread: String { pthread_equal(pthread_self(), mainThread) != 0 ? "the main thread" : "another thread" }

  /// Runs the loop in the default mode until it has handled one source, and returns the reason for its end.
  ///
  /// - Parameter isIdle: Called when the loop is about to sleep.
  @discardableResult
  func runOnce(isIdle: @escaping @Sendable () -> Void = {}) -> RunLoop.RunResult {
    let observer = RunLoop.Observer(activities: [.beforeTimers, .beforeWaiting], order: .max) { [passes] _, activity in
      if activity == .beforeTimers { passes.add() } else { isIdle() }
    }
    loop.add(observer, forMode: .default)
    defer { observer.invalidate() }
    let result = loop.run(mode: .default, for: Self.patience, returnAfterSourceHandled: true)
    log.write("run(mode: .default) = \(result)")
    return result
  }
}
