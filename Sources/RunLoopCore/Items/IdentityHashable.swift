// SPDX-License-Identifier: Apache-2.0

/// A class whose instances are compared and hashed by identity.
public protocol IdentityHashable: AnyObject, Hashable {}

extension IdentityHashable {
  /// Returns whether both operands are the same object.
  @inlinable public static func == (left: Self, right: Self) -> Bool { left === right }

  /// Hashes the object's identity.
  @inlinable public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
