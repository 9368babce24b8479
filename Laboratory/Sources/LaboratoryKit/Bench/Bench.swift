// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopTesting

/// Where experiments get their loops: real ones, on virtual time, each on a thread of its own; or the main loop; or
/// threads that make theirs themselves, on real time.
struct Bench: Sendable {
  /// What the experiment says while it runs, as the articles' programs print theirs.
  let log = Record()
  /// Where threads wait for each other.
  let meeting = Meeting(patience: .seconds(20))

  /// Runs `body` on a new thread with a new loop, and waits until both have ended.
  func onLoop<Result: Sendable>(_ body: @escaping @Sendable (Rig) -> Result) -> Result {
    onNewThread { [self] in
      log.write("A new loop:")
      return onVirtualTime(body)
    }
  }

  /// Runs `body` on the calling thread, whose loop is another one meanwhile, on virtual time; on the main thread, it is
  /// the main loop too.
  func onVirtualTime<Result>(_ body: (Rig) -> Result) -> Result {
    var result: Result?
    do {
      // A loop that makes passes indefinitely, or that is never woken, is stopped. What is seen then is not what the
      // experiment requires.
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

  /// Runs `body` on the calling thread, which is the main thread, with the main loop.
  ///
  /// The main loop is the process's only one that serves the main dispatch queue. It is on real time.
  func onMainLoop<Result>(_ body: (MainRig) -> Result) -> Result {
    precondition(Self.isOnMainThread, "only the main thread runs the main loop")
    let loop = RunLoop.main
    log.write("The main loop:")
    return body(MainRig(loop: loop, log: log))
  }
}
