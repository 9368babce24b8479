// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The last reference to an object, which somebody gives up.
final class Last<Object: AnyObject & Sendable>: Sendable {
  private let object: Mutex<Object?>

  init(_ object: Object) {
    self.object = Mutex(object)
  }

  func release() {
    // Outside the lock.
    let released = object.withLock { object in
      defer { object = nil }
      return object
    }
    withExtendedLifetime(released) {}
  }
}

/// A number that threads count up.
final class Tally: Sendable {
  // Relaxed: the threads that count meet elsewhere before the number is read.
  private let number = Atomic<Int>(0)

  func add(_ count: Int = 1) { number.wrappingAdd(count, ordering: .relaxed) }

  var count: Int { number.load(ordering: .relaxed) }
}

/// What one thread finds and another looks at.
final class Found<Value: Sendable>: Sendable {
  fileprivate let found: Mutex<Value>

  init(_ value: Value) {
    found = Mutex(value)
  }

  var value: Value {
    get { found.withLock { $0 } }
    set {
      // What was there is released outside the lock.
      let before = found.withLock { value in
        defer { value = newValue }
        return value
      }
      withExtendedLifetime(before) {}
    }
  }
}

extension Found where Value: RangeReplaceableCollection, Value.Element: Sendable {
  /// Adds an element, also if several threads do at the same time.
  func append(_ element: Value.Element) { found.withLock { $0.append(element) } }
}
