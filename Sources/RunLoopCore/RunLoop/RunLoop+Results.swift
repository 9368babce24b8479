// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// The methods of a loop that return whether it accepted a block, for use where a `Bool` is expected.
///
/// The methods of the same names in ``RunLoop`` return nothing, as Foundation's do. Code that returns their call,
/// passes it on in a closure, or requires it through a protocol therefore still compiles. Swift prefers a class's own
/// method to a protocol extension's, so these are chosen only where the result is needed: in a condition, for a
/// variable of type `Bool`, or as an argument. Where any type will do, as in `let result = loop.perform { … }`, in
/// string interpolation, or in `try #require(loop.perform { … })`, the result is `Void`; write `as Bool` there.
public protocol RunLoopMembers: RunLoop {}

extension RunLoop: RunLoopMembers {}

extension RunLoopMembers {
  /// Runs a block once on the loop's thread, when the loop next runs in the default mode, and returns whether it was
  /// accepted.
  ///
  /// - Returns: `false` if the loop rejects and releases the block because the loop's thread has ended.
  @discardableResult
  @inline(never)
  public func perform(_ block: consuming @escaping @Sendable () -> Void) -> Bool {
    #if DEBUG
      let site = crl_call_site()
    #else
      var site: UInt64 { @inline(__always) get { crl_return_address() } }
    #endif
    return enqueue(block, site: site)
  }

  /// Runs a block once on the loop's thread, when the loop next runs in one of several modes, and returns whether it
  /// was accepted.
  ///
  /// - Returns: `false` if the loop rejects and releases the block: the list is empty, or the loop's thread has ended.
  @discardableResult
  @inline(never)
  public func perform(inModes modes: [RunLoop.Mode], block: consuming @escaping @Sendable () -> Void) -> Bool {
    enqueue(block, in: modes, site: crl_call_site())
  }
}
