// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A number that several threads increment.
package final class Counter: Sendable {
  private let number = Atomic<Int>(0)

  package init() {}

  package var value: Int { number.load(ordering: .acquiring) }

  /// Adds to the number and returns the new value.
  @discardableResult
  package func add(_ more: Int = 1) -> Int { number.wrappingAdd(more, ordering: .acquiringAndReleasing).newValue }
}
