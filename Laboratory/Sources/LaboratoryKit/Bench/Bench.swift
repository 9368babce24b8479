// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting

/// Provides loops for experiments: real ones on virtual time, each on its own thread; the main loop; or threads on
/// real time that create their own.
struct Bench: Sendable {
  /// The messages of the experiment, like the output of the articles' programs.
  let log = Record()
  /// Lets threads wait for each other.
  let meeting = Meeting(patience: .seconds(20))

  /// Runs `body` on a new thread with a new loop, and waits until both have ended.
  func onLoop<Result: Sendable>(_ body: @escaping @Sendable (Rig) -> Result) -> Result {
    onNewThread { [self] in
      log.write("A new loop:")
      return onVirtualTime(body)
    }
  }

  /// Runs `body` on the calling thread with another loop on virtual time, which replaces the main loop as well if
  /// this is the main thread.
  func onVirtualTime<Result>(_ body: (Rig) -> Result) -> Result {
    var result: Result?
    do {
      // A loop that runs passes indefinitely or is never woken is stopped. The experiment then fails, as the
      // observation is not the required one.
      try VirtualTime.onThisThread(realTimeLimit: meeting.patience) { time in
        result = body(Rig(time: time, loop: .current, log: log))
      }
    } catch {
      log.write("\(error)")
    }
    guard let result else { fatalError("the virtual time has not begun") }
    return result
  }

  /// Whether the calling thread is the main thread, which ``onMainLoop(_:)`` needs.
  static var isOnMainThread: Bool { RunLoop.current == RunLoop.main }

  /// Runs `body` on the main thread with the main loop.
  ///
  /// The main loop is the only one that serves the main dispatch queue. It uses real time.
  func onMainLoop<Result>(_ body: (MainRig) -> Result) -> Result {
    precondition(Self.isOnMainThread, "only the main thread runs the main loop")
    let loop = RunLoop.main
    log.write("The main loop:")
    return body(MainRig(loop: loop, log: log))
  }
}
