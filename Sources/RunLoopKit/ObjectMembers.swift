// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopCore
public import RunLoopThreads

/// Members of `NSObject` that Foundation's loops, timers, threads and ports have, for types of other classes.
///
/// As in Foundation, these types are also `Hashable`.
public protocol FoundationMembers: NSObjectProtocol, Hashable, CustomStringConvertible, CustomDebugStringConvertible {}

extension FoundationMembers {
  /// A human-readable description of the object's state.
  ///
  /// Can be used from any thread. The corresponding Foundation property is `NSObject.description`.
  public var description: String { debugDescription }

  /// A hash value, which is equal for equal objects.
  ///
  /// The corresponding Foundation property is `NSObject.hash`.
  public var hash: Int { hashValue }

  /// Whether `object` is this one.
  ///
  /// The corresponding Foundation method is `NSObject.isEqual(_:)`.
  public func isEqual(_ object: Any?) -> Bool { object as AnyObject? === self }

  /// The object itself.
  ///
  /// The corresponding Foundation method is `NSObject.self()`.
  public func `self`() -> Self { self }

  /// Whether the object is a proxy for another one, which is always false.
  ///
  /// The corresponding Foundation method is `NSObject.isProxy()`.
  public func isProxy() -> Bool { false }
}

extension RunLoopCore.RunLoop: FoundationMembers {}
extension RunLoopCore.Timer: FoundationMembers {}
extension RunLoopThreads.Thread: FoundationMembers {}
extension RunLoopCore.Port: FoundationMembers {}
