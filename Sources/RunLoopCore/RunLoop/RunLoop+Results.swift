// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder

/// The methods of loops that return whether the loop took a block, where a `Bool` is expected.
///
/// The methods of the same names in ``RunLoop`` return nothing, as Foundation's do, so that code compiles that returns
/// their call, passes it on in a closure, or asks for it by a protocol. A class's own method is preferred to one of a
/// protocol that it conforms to, so these are chosen only where their result is needed: in a condition, for a variable
/// whose type is `Bool`, or as an argument. Where any type will do, as in `let result = loop.perform { … }`, in the
/// interpolation of a string, or in `try #require(loop.perform { … })`, the result is nothing: write `as Bool` there.
public protocol RunLoopMembers: RunLoop {}

extension RunLoop: RunLoopMembers {}

extension RunLoopMembers {
  /// Runs a block once on the loop's thread, when the loop next runs in the default mode, and returns whether it will.
  ///
  /// - Returns: False if the loop rejects and releases the block, because the loop's thread has ended.
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
  /// will.
  ///
  /// - Returns: False if the loop rejects and releases the block: the list is empty, or the loop's thread has ended.
  @discardableResult
  @inline(never)
  public func perform(inModes modes: [RunLoop.Mode], block: consuming @escaping @Sendable () -> Void) -> Bool {
    enqueue(block, in: modes, site: crl_call_site())
  }
}
