// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// One object for the whole process, made at its first use; a forked child has an object of its own.
///
/// The parent's object may be in the middle of an operation when a child is forked, and its threads do not exist in the
/// child.
final class PerProcess<Object: AnyObject & Sendable>: Sendable {
  private let address = Atomic<UInt>(0)
  private let make: @Sendable () -> Object

  init(_ make: @escaping @Sendable () -> Object) { self.make = make }

  var value: Object {
    if let known = object(at: address.load(ordering: .acquiring)) { return known }
    Thread.watchForks()
    let made = make()
    // If several threads ask first, one of them makes the object that stays.
    let new = UInt(bitPattern: Unmanaged.passRetained(made).toOpaque())
    let (exchanged, original) = address.compareExchange(expected: 0, desired: new, ordering: .acquiringAndReleasing)
    guard !exchanged, let earlier = object(at: original) else { return made }
    Unmanaged.passUnretained(made).release()
    return earlier
  }

  /// In a forked child: gives up the parent's object.
  func forget() { address.store(0, ordering: .releasing) }

  private func object(at address: UInt) -> Object? {
    UnsafeRawPointer(bitPattern: address).map { Unmanaged<Object>.fromOpaque($0).takeUnretainedValue() }
  }
}
