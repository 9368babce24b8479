// SPDX-License-Identifier: Apache-2.0

/// An error thrown by run loop operations.
public enum RunLoopError: Error, Hashable, Sendable {
  /// The name stands for the common modes and is not a mode itself.
  case notAMode(RunLoop.Mode)
  /// The loop's thread has ended.
  case loopHasEnded
  /// The process's main thread has exited, as in a program with an `async` main, and its loop has ended.
  case mainThreadHasLeft
  /// The source has been invalidated.
  case invalidSource
  /// A task cannot wait for an item that is in no loop, because nothing serves it.
  case itemIsInNoLoop
  /// The system cannot watch the descriptor, or no descriptor is available for the epoll set.
  case cannotWatch(descriptor: Int32, SystemError)
  /// No descriptor is available for serving the main dispatch queue in a mode.
  case cannotServeMainQueue(RunLoop.Mode, SystemError)
  /// No descriptor is available with which another loop could wait for this one.
  case cannotBeHosted(SystemError)
  /// The loop waits in another loop, so it cannot be a guest of a third.
  case hasHost
  /// The loop is a guest of another loop, so it cannot wait in a third.
  case isGuest
  /// The loop runs on virtual time.
  case hasVirtualTime
  /// A call that must be made on the loop's own thread was made on another thread.
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
