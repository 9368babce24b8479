// SPDX-License-Identifier: Apache-2.0

/// A class whose objects are equal if they are the same.
public protocol IdentityHashable: AnyObject, Hashable {}

extension IdentityHashable {
  /// Whether both are the same.
  @inlinable public static func == (left: Self, right: Self) -> Bool { left === right }

  /// Hashes the identity of the object.
  @inlinable public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
