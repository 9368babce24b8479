// SPDX-License-Identifier: Apache-2.0

/// A weak reference that can be shared by threads.
package final class WeakBox<Object: AnyObject & Sendable>: @unchecked Sendable {
  // Sendable: a weak reference is read and cleared atomically, and written once.
  package private(set) weak var object: Object?

  package init(_ object: Object?) { self.object = object }
}
