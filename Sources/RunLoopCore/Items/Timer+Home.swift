// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

// What guards a timer: the table lock of its home, the loop that it is bound to or was last, or its own lock if it has
// none.
//
// The thread of that loop, which does most, so takes one lock. It may do so without the timer's own, as a home changes
// under both locks: what it finds to be the home under the home's lock stays it. Every other thread takes the timer's
// lock first, so that the home is there when it takes the second.

extension Timer {
  /// The loop whose table lock guards the timer.
  ///
  /// Under the timer's lock, or that loop's.
  var home: RunLoop? { RunLoop.unmanaged(at: address)?.takeUnretainedValue() }

  private var address: UInt { homeAddress.load(ordering: .acquiring) }

  /// Whether the timer is in one of its home's modes or among its common items.
  ///
  /// Under the guarding lock. One that is in no mode is free for another loop.
  var isHeld: Bool { !slots.isEmpty || isCommon }

  /// The loop that has the timer in its modes or among its common items.
  ///
  /// Any thread.
  var holder: RunLoop? { guarded { isHeld ? $0 : nil } }

  /// Does something under the lock that guards the timer, and says whose it is.
  @inline(__always)
  func guarded<Result>(_ body: (RunLoop?) -> Result) -> Result {
    atHomeHere(body) ?? guardedFromAfar(body)
  }

  /// Does something under the lock of the timer's home, if that is the calling thread's loop; nil if it is not.
  @inline(__always)
  func atHomeHere<Result>(_ body: (RunLoop) -> Result) -> Result? {
    let address = address
    guard RunLoop.isCurrent(at: address) else { return nil }
    // The rest of the timer is fetched while the processor waits for the lock.
    crl_prefetch(UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()) + 64)
    // The loop lives as long as its thread, which is this one.
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

  /// Lets the timer go to the loop whose table lock, with its own, is held, or to none.
  func setHome(_ loop: RunLoop?) {
    let new = loop.map(RunLoop.address) ?? 0
    let old = homeAddress.load(ordering: .relaxed)
    guard new != old else { return }
    if let loop { _ = Unmanaged.passUnretained(loop).retain() }
    homeAddress.store(new, ordering: .releasing)
    // Whoever holds the lock of the former home holds a reference to it.
    RunLoop.unmanaged(at: old)?.release()
  }

  /// Whether a loop is the home, under the lock of its table.
  func isAt(_ loop: RunLoop) -> Bool { address == RunLoop.address(of: loop) }

  /// Takes the timer, which is invalid, out of everything, if its home is the calling thread's loop; false if it is
  /// not.
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
    // The thread's loop, at whose home this was.
    if isDone { RunLoop.withCurrent(at: address) { $0.endHostedWaitIfEmpty() } }
    return isDone
  }

  /// Ends a timer that has fired once.
  ///
  /// The loop's thread; but the timer may be another loop's by now.
  func endFiringForGood() {
    let closing = reference.close()
    guard closing != .already, leaveHomeHere(afterFiring: true) else { return endFiringForGood(closing) }
    if closing == .release { releaseContents() }
  }

  /// The same, of a timer that was ended before or is not at home.
  @inline(never)
  private func endFiringForGood(_ closing: HandlerReference.Closing) {
    if closing != .already {
      holder?.expel(self)
      if closing == .release { releaseContents() }
    }
    guarded { _ in isFiring = false }
  }
}

// The loop at an address that a timer keeps.
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

  /// Does something with the calling thread's loop, which lives as long as the thread, and so is not retained for it.
  @inline(__always)
  static func withCurrent<Result>(at address: UInt, _ body: (RunLoop) -> Result) -> Result {
    unmanaged(at: address).unsafelyUnwrapped._withUnsafeGuaranteedRef(body)
  }

  /// The address of the calling thread's loop, with a reference to it; zero if it has none.
  static func retainedCurrentAddress() -> UInt {
    guard let slot = crl_thread_slot_get(), slot != endedMark else { return 0 }
    let loop = Unmanaged<RunLoop>.fromOpaque(slot)
    loop._withUnsafeGuaranteedRef {
      if $0.spareReferences > 0 { $0.spareReferences &-= 1 } else { _ = loop.retain() }
    }
    return UInt(bitPattern: slot)
  }

  /// Gives up a reference to the loop at an address, if it is not zero.
  ///
  /// The loop's own thread keeps the reference for its next timer, which is faster than counting atomically.
  @inline(__always)
  static func giveBack(_ address: UInt) {
    guard isCurrent(at: address) else { return unmanaged(at: address)?.release() ?? () }
    withCurrent(at: address) { $0.spareReferences &+= 1 }
  }

  /// The time, or a date that has always been if `tick` is well ahead anyhow.
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

  /// The time, or a date that has always been if `tick` is well ahead anyhow.
  @inline(__always)
  func now(unlessAheadOf tick: Tick) -> Tick {
    isOnSystemTime ? SystemWaiter.now(unlessAheadOf: tick) : waiter.now
  }
}
