// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore

// What loops and timers have from NSObject in Foundation. Beside these members they are Hashable, by identity, as
// there.

extension RunLoop {
  /// A human-readable description of the loop's modes and their items.
  ///
  /// Can be used from any thread. The corresponding Foundation property is `NSObject.description`.
  public var description: String { debugDescription }

  /// A number that is the same for the same loop.
  ///
  /// The corresponding Foundation property is `NSObject.hash`.
  public var hash: Int { hashValue }

  /// Whether `object` is this loop.
  ///
  /// The corresponding Foundation method is `NSObject.isEqual(_:)`.
  public func isEqual(_ object: Any?) -> Bool { object as AnyObject? === self }
}

extension Timer {
  /// A human-readable description of the timer's state.
  ///
  /// Can be used from any thread. The corresponding Foundation property is `NSObject.description`.
  public var description: String { debugDescription }

  /// A number that is the same for the same timer.
  ///
  /// The corresponding Foundation property is `NSObject.hash`.
  public var hash: Int { hashValue }

  /// Whether `object` is this timer.
  ///
  /// The corresponding Foundation method is `NSObject.isEqual(_:)`.
  public func isEqual(_ object: Any?) -> Bool { object as AnyObject? === self }
}
