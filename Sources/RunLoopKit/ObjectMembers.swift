// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopCore
public import RunLoopThreads

// What loops and timers have from NSObject in Foundation. Beside these members they are Hashable, by identity, as
// there.

extension RunLoopCore.RunLoop {
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

extension RunLoopCore.Timer {
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

// Loops, timers, threads and ports are no objects of Foundation's class, and have its protocol.

extension RunLoopCore.RunLoop: NSObjectProtocol {
  /// The loop itself.
  ///
  /// The corresponding Foundation method is `NSObject.self()`.
  public func `self`() -> Self { self }

  /// Whether the loop stands for another object: false.
  ///
  /// The corresponding Foundation method is `NSObject.isProxy()`.
  public func isProxy() -> Bool { false }
}

extension RunLoopCore.Timer: NSObjectProtocol {
  /// The timer itself.
  ///
  /// The corresponding Foundation method is `NSObject.self()`.
  public func `self`() -> Self { self }

  /// Whether the timer stands for another object: false.
  ///
  /// The corresponding Foundation method is `NSObject.isProxy()`.
  public func isProxy() -> Bool { false }
}

extension RunLoopThreads.Thread: NSObjectProtocol {
  /// The thread itself.
  ///
  /// The corresponding Foundation method is `NSObject.self()`.
  public func `self`() -> Self { self }

  /// Whether the thread stands for another object: false.
  ///
  /// The corresponding Foundation method is `NSObject.isProxy()`.
  public func isProxy() -> Bool { false }
}

extension RunLoopCore.Port: NSObjectProtocol {
  /// The port itself.
  ///
  /// The corresponding Foundation method is `NSObject.self()`.
  public func `self`() -> Self { self }

  /// Whether the port stands for another object: false.
  ///
  /// The corresponding Foundation method is `NSObject.isProxy()`.
  public func isProxy() -> Bool { false }
}
