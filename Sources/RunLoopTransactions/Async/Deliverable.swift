// SPDX-License-Identifier: Apache-2.0

/// A set of completions that a group calls on its loop's thread.
protocol Deliverable: AnyObject, Sendable {
  /// Calls the completions that have not been called yet.
  ///
  /// - Parameter isCallOut: Whether the loop is the caller, as opposed to user code.
  func deliver(isCallOut: Bool)
  /// Calls the remaining completions with the error that the loop's thread has ended.
  func loopDidEnd()
}
