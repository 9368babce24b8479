// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// An object that exists once per process and is created on first use; a forked child creates its own.
///
/// The parent's object may be in the middle of an operation at the fork, and its threads do not exist in the child.
final class PerProcess<Object: AnyObject & Sendable>: Sendable {
  private let address = Atomic<UInt>(0)
  private let make: @Sendable () -> Object

  init(_ make: @escaping @Sendable () -> Object) { self.make = make }

  var value: Object {
    if let known = object(at: address.load(ordering: .acquiring)) { return known }
    Thread.watchForks()
    let made = make()
    // If several threads get here first, only one of their objects is kept.
    let new = UInt(bitPattern: Unmanaged.passRetained(made).toOpaque())
    let (exchanged, original) = address.compareExchange(expected: 0, desired: new, ordering: .acquiringAndReleasing)
    guard !exchanged, let earlier = object(at: original) else { return made }
    Unmanaged.passUnretained(made).release()
    return earlier
  }

  /// Forgets the parent's object; called in a forked child.
  func forget() { address.store(0, ordering: .releasing) }

  private func object(at address: UInt) -> Object? {
    UnsafeRawPointer(bitPattern: address).map { Unmanaged<Object>.fromOpaque($0).takeUnretainedValue() }
  }
}
