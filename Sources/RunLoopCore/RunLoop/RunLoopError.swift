/// Why a run loop did not do what it was asked to.
public enum RunLoopError: Error, Hashable, Sendable {
  /// The name stands for modes and is none itself.
  case notAMode(RunLoop.Mode)
  /// The loop's thread has ended.
  case loopHasEnded
  /// The source has been invalidated.
  case invalidSource
  /// The system cannot watch a descriptor, or has none left to do it with.
  case cannotWatch(descriptor: Int32, SystemError)
  /// The system has no descriptor left for serving the main dispatch queue in a mode.
  case cannotServeMainQueue(RunLoop.Mode, SystemError)
}

extension RunLoopError: CustomStringConvertible {
  /// The text for a person.
  public var description: String {
    switch self {
    case .notAMode(let mode): "\"\(mode)\" stands for the common modes and is not a mode itself"
    case .loopHasEnded: "the thread of the run loop has ended"
    case .invalidSource: "the source has been invalidated"
    case .cannotWatch(let descriptor, let error): "descriptor \(descriptor) cannot be watched: \(error)"
    case .cannotServeMainQueue(let mode, let error):
      "the main dispatch queue cannot be served in the mode \"\(mode)\": \(error)"
    }
  }
}
