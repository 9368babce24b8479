// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// A value that is created once per process, on first use.
///
/// A forked child creates its own value and does not use the parent's: its locks may be held by threads that do not
/// exist in the child, and its counts may include such threads.
package final class PerProcess<Value: AnyObject & Sendable>: Sendable {
  private final class Holder: Sendable {
    let value: Value
    let generation = ForkGeneration.current

    init(_ value: Value) { self.value = value }
  }

  private let held = Atomic<Unmanaged<Holder>?>(nil)
  private let make: @Sendable () -> Value

  /// Takes a function that creates a value; it must not block, and may be called once more than needed.
  package init(_ make: @escaping @Sendable () -> Value) { self.make = make }

  /// The value of this process.
  package var value: Value {
    let found = held.load(ordering: .acquiring)
    // A holder is never released: it lives as long as the process, or belongs to the parent.
    if let holder = found?.takeUnretainedValue(), !holder.generation.isPast { return holder.value }
    let made = Unmanaged.passRetained(Holder(make()))
    let (exchanged, original) = held.compareExchange(
      expected: found, desired: made, ordering: .acquiringAndReleasing)
    guard !exchanged, let first = original?.takeUnretainedValue() else { return made.takeUnretainedValue().value }
    made.release()
    return first.value
  }
}
