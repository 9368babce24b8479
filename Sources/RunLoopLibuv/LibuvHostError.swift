// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

/// An error that prevents a run loop from being served in a libuv loop.
public enum LibuvHostError: Error, Hashable, Sendable {
  /// Neither the program nor the system provides a libuv function; the associated value is the system's message.
  case libraryNotFound(String)
  /// The run loop is already attached to a libuv loop.
  case isAttached
  /// A libuv call failed; the associated values are its name and libuv's error code, which is a negative `errno`.
  case call(String, Int32)
  /// The run loop cannot be a guest of another loop.
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
