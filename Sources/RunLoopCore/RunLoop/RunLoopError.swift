// SPDX-License-Identifier: Apache-2.0

/// The reason why a run loop did not do what it was asked to.
public enum RunLoopError: Error, Hashable, Sendable {
  /// The name stands for the common modes and is not a mode itself.
  case notAMode(RunLoop.Mode)
  /// The loop's thread has ended.
  case loopHasEnded
  /// The process's first thread has left, as it does in a program with an `async` main, and its loop has ended.
  case mainThreadHasLeft
  /// The source has been invalidated.
  case invalidSource
  /// A task would wait for an item that is in no loop, where nothing serves it.
  case itemIsInNoLoop
  /// The system cannot watch a descriptor, or has none left to do it with.
  case cannotWatch(descriptor: Int32, SystemError)
  /// The system has no descriptor left for serving the main dispatch queue in a mode.
  case cannotServeMainQueue(RunLoop.Mode, SystemError)
  /// The system has no descriptor left with which another loop could wait for this one.
  case cannotBeHosted(SystemError)
  /// The loop waits in another loop, and so cannot be a guest of a third.
  case hasHost
  /// The loop is a guest of another loop, and so cannot wait in a third.
  case isGuest
  /// The loop's time is not the system's.
  case hasVirtualTime
  /// The call must be made on the loop's own thread, and was made on another one.
  case wrongThread(loop: String, caller: String)
}

extension RunLoopError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .notAMode(let mode): "\"\(mode)\" stands for the common modes and is not a mode itself"
    case .loopHasEnded: "the thread of the run loop has ended"
    case .mainThreadHasLeft:
      "the main thread has left, as in every program with an `async` main, and nothing can run on it: "
        + "give the program a `main` that is not `async`, and call `MainLoop.run` in it; a test of Swift Testing, whose "
        + "runner has such a main, runs its body in `VirtualTime.asMain` of RunLoopTesting, or is an XCTestCase"
    case .invalidSource: "the source has been invalidated"
    case .itemIsInNoLoop: "the item is in no run loop, which would serve it: add it to one first"
    case .cannotWatch(let descriptor, let error): "descriptor \(descriptor) cannot be watched: \(error)"
    case .cannotServeMainQueue(let mode, let error):
      "the main dispatch queue cannot be served in the mode \"\(mode)\": \(error)"
    case .cannotBeHosted(let error): "the run loop cannot be hosted by another: \(error)"
    case .hasHost: "the run loop waits in another loop already"
    case .isGuest: "the run loop is a guest of another loop"
    case .hasVirtualTime: "the run loop's time is not the system's"
    case .wrongThread(let loop, let caller): "the run loop of \(loop) was called by \(caller)"
    }
  }
}
