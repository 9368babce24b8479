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
  private let number = Atomic<Int>(0)

  func add(_ count: Int = 1) { number.wrappingAdd(count, ordering: .relaxed) }

  var count: Int { number.load(ordering: .relaxed) }
}

/// What one thread finds and another looks at.
final class Found<Value: Sendable>: Sendable {
  private let found: Mutex<Value>

  init(_ value: Value) {
    found = Mutex(value)
  }

  var value: Value {
    get { found.withLock { $0 } }
    set { found.withLock { $0 = newValue } }
  }
}
