// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore

/// The main loop with the instruments around it, on real time.
///
/// Any thread; the loop is run on the main thread. It outlives every experiment: nothing is to be left in it.
struct MainRig: Sendable {
  let loop: RunLoop
  /// What the experiment says.
  let log: Record
  /// How many times the loop has begun to look for what to serve, in the runs of this rig.
  let passes = Tally()
  private let mainThread = pthread_self()

  /// How long a run may take before it is given up.
  ///
  /// An experiment ends its runs by events; this ends them if one is lost.
  static let patience = Duration.seconds(10)

  /// On the main thread.
  init(loop: RunLoop, log: Record) {
    self.loop = loop
    self.log = log
  }

  /// The calling thread, as the articles tell threads apart.
  var thread: String { pthread_equal(pthread_self(), mainThread) != 0 ? "the main thread" : "another thread" }

  /// Runs the loop in the default mode until it has handled one source; what ended the run.
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
