// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// Whether what is called now is called by the display in a call-out of the main loop, and so named in its record, or
/// by a function of the user's, such as one that flushes the commit, whose call-out is named already.
@MainActor
enum DisplayCallOut {
  /// The depth of the run that has called the display; zero: none has.
  private static var depth = 0

  /// Calls a function in whose time the display calls the user's code.
  ///
  /// - Parameter isCallOut: Whether the loop has called, and not a user's function.
  static func make<Result>(_ isCallOut: Bool = true, _ body: () -> Result) -> Result {
    let outer = depth
    if isCallOut { depth = RunLoop.main.runDepth }
    defer { depth = outer }
    return body()
  }

  /// Names the type of an object, one of whose methods is about to be called.
  static func note(_ object: @autoclosure () -> Any) {
    noteCall(on: depth != 0 && depth == RunLoop.main.runDepth ? type(of: object()) : nil)
  }

  /// Names the function of a closure that is about to be called.
  ///
  /// - Parameter holder: A structure that has nothing but the closure.
  static func note<Holder>(closure holder: @autoclosure () -> Holder) {
    noteCall(of: depth != 0 && depth == RunLoop.main.runDepth ? holder() : nil)
  }
}

/// A completion block, which is kept without a thunk in a structure of its own.
struct ShownBlock {
  let call: @MainActor @Sendable () -> Void
}
