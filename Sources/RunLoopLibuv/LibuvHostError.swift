// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// The reason why a run loop is not served in a loop of libuv's.
public enum LibuvHostError: Error, Hashable, Sendable {
  /// Neither the program nor the system has a function of libuv's; with the system's reason.
  case libraryNotFound(String)
  /// The run loop is served in a loop of libuv's already.
  case isAttached
  /// A call of libuv's has failed; with its name and libuv's number, which is a negative `errno`.
  case call(String, Int32)
  /// The run loop cannot be a guest.
  case runLoop(RunLoopError)
}

extension LibuvHostError: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .libraryNotFound(let reason): "libuv cannot be used: \(reason)"
    case .isAttached: "the run loop is served in a loop of libuv's already"
    case .call(let name, let number): "\(name): \(SystemError(call: name, number: -number))"
    case .runLoop(let error): "the run loop cannot be served in a loop of libuv's: \(error)"
    }
  }
}
