// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// Something of which each process has one, made when it is first asked for.
///
/// A child of a fork has its own, and leaves its parent's as it is: a thread that is not there may hold its locks, and
/// the threads that it counts are not there either.
package final class PerProcess<Value: AnyObject & Sendable>: Sendable {
  private final class Holder: Sendable {
    let value: Value
    let generation = ForkGeneration.current

    init(_ value: Value) { self.value = value }
  }

  private let held = Atomic<Unmanaged<Holder>?>(nil)
  private let make: @Sendable () -> Value

  /// Takes what makes a value: it waits for nothing, and may be called once more than its result is used.
  package init(_ make: @escaping @Sendable () -> Value) { self.make = make }

  /// This process's.
  package var value: Value {
    let found = held.load(ordering: .acquiring)
    // What was held once is never released: it lives as long as the process, or is the parent's.
    if let holder = found?.takeUnretainedValue(), !holder.generation.isPast { return holder.value }
    let made = Unmanaged.passRetained(Holder(make()))
    let (exchanged, original) = held.compareExchange(
      expected: found, desired: made, ordering: .acquiringAndReleasing)
    guard !exchanged, let first = original?.takeUnretainedValue() else { return made.takeUnretainedValue().value }
    made.release()
    return first.value
  }
}
