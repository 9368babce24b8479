// SPDX-License-Identifier: Apache-2.0

/// What a group delivers: completions that a loop's thread is to call.
protocol Deliverable: AnyObject, Sendable {
  /// Calls the completions that were not called yet.
  func deliver()
  /// Calls them with the reason that the loop's thread has ended.
  func loopDidEnd()
}
