// SPDX-License-Identifier: Apache-2.0

/// What a group delivers: completions that a loop's thread is to call.
protocol Deliverable: AnyObject, Sendable {
  /// Calls the completions that were not called yet.
  ///
  /// - Parameter isCallOut: Whether the loop has called, and not a user's function.
  func deliver(isCallOut: Bool)
  /// Calls them with the reason that the loop's thread has ended.
  func loopDidEnd()
}
