// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import Synchronization

/// One object for all of a process, made at its first use; a forked child has one of its own.
///
/// The parent's may be in the middle of anything when a child is forked, and its threads are not there.
final class PerProcess<Object: AnyObject & Sendable>: Sendable {
  private let address = Atomic<UInt>(0)
  private let make: @Sendable () -> Object

  init(_ make: @escaping @Sendable () -> Object) { self.make = make }

  var value: Object {
    if let known = object(at: address.load(ordering: .acquiring)) { return known }
    Thread.watchForks()
    let made = make()
    // Of several threads that ask first, one makes the object that stays.
    let new = UInt(bitPattern: Unmanaged.passRetained(made).toOpaque())
    let (exchanged, original) = address.compareExchange(expected: 0, desired: new, ordering: .acquiringAndReleasing)
    guard !exchanged, let earlier = object(at: original) else { return made }
    Unmanaged.passUnretained(made).release()
    return earlier
  }

  /// In a forked child: lets go of the parent's.
  func forget() { address.store(0, ordering: .releasing) }

  private func object(at address: UInt) -> Object? {
    UnsafeRawPointer(bitPattern: address).map { Unmanaged<Object>.fromOpaque($0).takeUnretainedValue() }
  }
}
