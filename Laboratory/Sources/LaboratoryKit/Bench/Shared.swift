// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Holds the last reference to an object until it is released explicitly.
final class Last<Object: AnyObject & Sendable>: Sendable {
  private let object: Mutex<Object?>

  init(_ object: Object) {
    self.object = Mutex(object)
  }

  func release() {
    // Released outside the lock.
    let released = object.withLock { object in
      defer { object = nil }
      return object
    }
    withExtendedLifetime(released) {}
  }
}

/// A number that threads increment.
final class Tally: Sendable {
  // Relaxed: other synchronization precedes the read of the number.
  private let number = Atomic<Int>(0)

  func add(_ count: Int = 1) { number.wrappingAdd(count, ordering: .relaxed) }

  var count: Int { number.load(ordering: .relaxed) }
}

/// A value that one thread stores and another reads.
final class Found<Value: Sendable>: Sendable {
  fileprivate let found: Mutex<Value>

  init(_ value: Value) {
    found = Mutex(value)
  }

  var value: Value {
    get { found.withLock { $0 } }
    set {
      // The old value is released outside the lock.
      let before = found.withLock { value in
        defer { value = newValue }
        return value
      }
      withExtendedLifetime(before) {}
    }
  }
}

extension Found where Value: RangeReplaceableCollection, Value.Element: Sendable {
  /// Appends an element; can be called by several threads at the same time.
  func append(_ element: Value.Element) { found.withLock { $0.append(element) } }
}
