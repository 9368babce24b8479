// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

// A timer's home is the loop that it is bound to, or was bound to last. The home's table lock guards the timer; without
// a home, the timer's own lock does.
//
// The home changes only while both locks are held. The home's thread, which does most of the work, therefore needs only
// the table lock: if the loop is still the home under that lock, it stays the home. Other threads take the timer's lock
// first, which keeps the home alive while they take the second.

extension Timer {
  /// The loop whose table lock guards the timer.
  ///
  /// Requires the timer's lock or that loop's table lock.
  var home: RunLoop? { RunLoop.unmanaged(at: address)?.takeUnretainedValue() }

  private var address: UInt { homeAddress.load(ordering: .acquiring) }

  /// Whether the timer is in one of its home's modes or among its common items.
  ///
  /// Requires the guarding lock. A timer that is in no mode can join another loop.
  var isHeld: Bool { !slots.isEmpty || isCommon }

  /// The loop that has the timer in its modes or among its common items.
  ///
  /// Can be used from any thread.
  var holder: RunLoop? { guarded { isHeld ? $0 : nil } }

  /// Calls a closure with the timer's home, under the lock that guards the timer.
  @inline(__always)
  func guarded<Result>(_ body: (RunLoop?) -> Result) -> Result {
    atHomeHere(body) ?? guardedFromAfar(body)
  }

  /// Calls a closure under the table lock of the timer's home if that is the calling thread's loop; otherwise returns
  /// nil.
  @inline(__always)
  func atHomeHere<Result>(_ body: (RunLoop) -> Result) -> Result? {
    let address = address
    guard RunLoop.isCurrent(at: address) else { return nil }
    // Prefetches the rest of the timer while the processor waits for the lock.
    crl_prefetch(UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()) + 64)
    // The loop is alive as long as this thread.
    return RunLoop.withCurrent(at: address) { loop in
      loop.table.locked { address == self.address ? body(loop) : nil }
    }
  }

  @inline(never)
  private func guardedFromAfar<Result>(_ body: (RunLoop?) -> Result) -> Result {
    lock.lock()
    defer { lock.unlock() }
    if let home, home.table.isOfParent, !isHeld { setHome(nil) }
    guard let home else { return body(nil) }
    return home.table.locked { body(home) }
  }

  /// Makes a loop the timer's home; nil leaves the timer without a home.
  ///
  /// Requires the timer's lock and the table lock of the loop.
  func setHome(_ loop: RunLoop?) {
    let new = loop.map(RunLoop.address) ?? 0
    let old = homeAddress.load(ordering: .relaxed)
    guard new != old else { return }
    if let loop { _ = Unmanaged.passUnretained(loop).retain() }
    homeAddress.store(new, ordering: .releasing)
    // A thread that holds the former home's lock also holds a reference to that loop.
    RunLoop.unmanaged(at: old)?.release()
  }

  /// Whether a loop is the home; requires its table lock.
  func isAt(_ loop: RunLoop) -> Bool { address == RunLoop.address(of: loop) }

  /// Removes the timer, which is invalid, from all modes if its home is the calling thread's loop; otherwise returns
  /// false.
  @inline(__always)
  func leaveHomeHere(afterFiring: Bool = false) -> Bool {
    let address = address
    let isDone =
      atHomeHere { loop in
        guard !isCommon else { return false }
        loop.removeFromModes(self)
        if afterFiring { isFiring = false }
        return true
      } ?? false
    // The home is this thread's loop.
    if isDone { RunLoop.withCurrent(at: address) { $0.endHostedWaitIfEmpty() } }
    return isDone
  }

  /// Ends a one-shot timer after its call-out.
  ///
  /// Called on the thread of the loop that fired it. The timer may be in another loop by now.
  func endFiringForGood() {
    let closing = reference.close()
    guard closing != .already, leaveHomeHere(afterFiring: true) else { return endFiringForGood(closing) }
    if closing == .release { releaseContents() }
  }

  /// Ends a timer that was invalidated before, or whose home is not the calling thread's loop.
  @inline(never)
  private func endFiringForGood(_ closing: HandlerReference.Closing) {
    if closing != .already {
      holder?.expel(self)
      if closing == .release { releaseContents() }
    }
    guarded { _ in isFiring = false }
  }
}

// A timer stores its home as an address.
extension RunLoop {
  static func address(of loop: RunLoop) -> UInt { UInt(bitPattern: Unmanaged.passUnretained(loop).toOpaque()) }

  static func unmanaged(at address: UInt) -> Unmanaged<RunLoop>? {
    UnsafeRawPointer(bitPattern: address).map(Unmanaged.fromOpaque)
  }

  /// Whether the loop at an address is the calling thread's.
  @inline(__always)
  static func isCurrent(at address: UInt) -> Bool {
    address != 0 && UInt(bitPattern: crl_thread_slot_get()) == address
  }

  /// Calls a closure with the calling thread's loop, which is not retained because it is alive as long as the thread.
  @inline(__always)
  static func withCurrent<Result>(at address: UInt, _ body: (RunLoop) -> Result) -> Result {
    unmanaged(at: address).unsafelyUnwrapped._withUnsafeGuaranteedRef(body)
  }

  /// Returns the address of the calling thread's loop and takes a reference to the loop; zero if there is no loop.
  static func retainedCurrentAddress() -> UInt {
    guard let slot = crl_thread_slot_get(), slot != endedMark else { return 0 }
    let loop = Unmanaged<RunLoop>.fromOpaque(slot)
    loop._withUnsafeGuaranteedRef {
      if $0.spareReferences > 0 { $0.spareReferences &-= 1 } else { _ = loop.retain() }
    }
    return UInt(bitPattern: slot)
  }

  /// Releases a reference to the loop at an address, if it is not zero.
  ///
  /// The loop's own thread keeps the reference for its next timer, which is faster than counting atomically.
  @inline(__always)
  static func giveBack(_ address: UInt) {
    guard isCurrent(at: address) else { return unmanaged(at: address)?.release() ?? () }
    withCurrent(at: address) { $0.spareReferences &+= 1 }
  }

  /// The time, or ``Tick/distantPast`` if `tick` is well in the future.
  static func currentNow(unlessAheadOf tick: Tick) -> Tick {
    let address = UInt(bitPattern: crl_thread_slot_get())
    guard address != 0, address != UInt(bitPattern: endedMark) else {
      return SystemWaiter.now(unlessAheadOf: tick)
    }
    return withCurrent(at: address) { $0.now(unlessAheadOf: tick) }
  }

  /// The time by the loop's clock.
  @inline(__always)
  var tickNow: Tick { isOnSystemTime ? SystemWaiter.now : waiter.now }

  /// The time by the loop's clock, or ``Tick/distantPast`` if `tick` is well in the future.
  @inline(__always)
  func now(unlessAheadOf tick: Tick) -> Tick {
    isOnSystemTime ? SystemWaiter.now(unlessAheadOf: tick) : waiter.now
  }
}
