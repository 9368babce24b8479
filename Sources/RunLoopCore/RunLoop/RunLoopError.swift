/// Why a run loop did not do what it was asked to.
public enum RunLoopError: Error, Hashable, Sendable {
  /// The name stands for modes and is none itself.
  case notAMode(RunLoop.Mode)
  /// The loop's thread has ended.
  case loopHasEnded
}

extension RunLoopError: CustomStringConvertible {
  /// The text for a person.
  public var description: String {
    switch self {
    case .notAMode(let mode): "\"\(mode)\" stands for the common modes and is not a mode itself"
    case .loopHasEnded: "the thread of the run loop has ended"
    }
  }
}
