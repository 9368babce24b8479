// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// Tracks whether user code is being called by the display in a call-out of the main loop, and so named in its record,
/// or within another function of the user, whose call-out is already named.
@MainActor
enum DisplayCallOut {
  /// The depth of the run that called the display, or zero outside of such a call.
  private static var depth = 0

  /// Calls a function during which the display calls user code.
  ///
  /// - Parameter isCallOut: Whether the loop is the caller, as opposed to user code.
  static func make<Result>(_ isCallOut: Bool = true, _ body: () -> Result) -> Result {
    let outer = depth
    if isCallOut { depth = RunLoop.main.runDepth }
    defer { depth = outer }
    return body()
  }

  /// Records the type of an object whose method is about to be called.
  static func note(_ object: @autoclosure () -> Any) {
    noteCall(on: depth != 0 && depth == RunLoop.main.runDepth ? type(of: object()) : nil)
  }

  /// Records the function of a closure that is about to be called.
  ///
  /// - Parameter holder: A structure that contains only the closure.
  static func note<Holder>(closure holder: @autoclosure () -> Holder) {
    noteCall(of: depth != 0 && depth == RunLoop.main.runDepth ? holder() : nil)
  }
}

/// Wraps a completion block, so that storing it creates no reabstraction thunk.
struct ShownBlock {
  let call: @MainActor @Sendable () -> Void
}
