// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A weak reference that may be shared by threads.
final class Weak<Object: AnyObject & Sendable>: Sendable {
  private struct Reference {
    weak var object: Object?
  }

  private let reference: Mutex<Reference>

  init(_ object: Object? = nil) {
    reference = Mutex(Reference(object: object))
  }

  var object: Object? {
    get { reference.withLock { $0.object } }
    set { reference.withLock { $0.object = newValue } }
  }

  /// Whether the object was released, in a word.
  var state: String { object == nil ? "released" : "kept" }
}
