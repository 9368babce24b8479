// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

/// The counter that wakes a loop from a wait in an epoll set, or wakes the other loop that sleeps in its place.
///
/// It is created when the loop first waits for descriptors or in another loop, belongs to every epoll set of the loop,
/// and stays open as long as the loop's object exists. So a thread that wakes the loop finds it without a lock, and
/// never writes to a descriptor that was closed and reused. ``RunLoop/stop()`` and ``RunLoop/wakeUp()`` can
/// therefore be called in a signal handler, whatever code it interrupted.
final class WakeBell: Sendable {
  /// The counter's number; −1 before it was created.
  ///
  /// Relaxed loads suffice on the loop's thread and on a thread that removed the sleeper from the loop's word, because
  /// the loop obtained the counter before it announced its sleep in the word.
  private let number = Atomic<Int32>(-1)
  /// The descriptor that wakes the loop that sleeps in this one's place; −1 if that loop watches the counter.
  private let hostNumber = Atomic<Int32>(-1)
  /// The value of ``isRung``.
  private let rung = Atomic<Bool>(false)
  /// Whether the other loop may sleep without checking ``isRung`` again.
  private let hostSleeps = Atomic<Bool>(true)
  /// The counter, guarded by the loop's table lock.
  @exclusivity(unchecked) nonisolated(unsafe) private var stored: WakeDescriptor?

  /// Returns the counter, and creates it on first use.
  ///
  /// Requires the loop's table lock.
  func counter() throws(SystemError) -> WakeDescriptor {
    if let stored { return stored }
    let made = try WakeDescriptor()
    stored = made
    number.store(made.descriptor.number, ordering: .sequentiallyConsistent)
    return made
  }

  /// The counter's descriptor, or nil before the counter was created.
  ///
  /// Requires the loop's table lock.
  var descriptor: OwnedDescriptor? { stored?.descriptor }
}

// Waking. Can be called from any thread and in a signal handler.
extension WakeBell {
  /// Ends the wait of the loop's thread in an epoll set.
  @inline(__always)
  func ring() {
    WakeBell.write(number.load(ordering: .relaxed))
    // Makes the loop read the counter before it sleeps in another loop, which watches the counter level-triggered.
    rung.store(true, ordering: .releasing)
  }

  /// Wakes the loop that sleeps in this one's place; returns false if no descriptor can wake it.
  ///
  /// - Parameter isHere: Whether the calling thread is the loop's own. The other loop is awake in that case, and checks
  ///   ``isRung`` before it sleeps, unless ``noteHost(sleeps:)`` was called with `true`.
  func ringInHost(isHere: Bool) -> Bool {
    let host = hostNumber.load(ordering: .acquiring)
    let target = host >= 0 ? host : number.load(ordering: .acquiring)
    guard target >= 0 else { return false }
    rung.store(true, ordering: .sequentiallyConsistent)
    guard !isHere || host < 0 || hostSleeps.load(ordering: .sequentiallyConsistent) else { return true }
    WakeBell.write(target)
    // Set again, because the loop may have silenced the bell before the write, and would not read the counter again.
    rung.store(true, ordering: .releasing)
    return true
  }

  /// Adds one to the counter, which cannot fail unless the counter is near its limit.
  private static func write(_ number: Int32) {
    guard number >= 0 else { return }
    _ = try? SystemCall.eventWrite.makeUninterrupted { crl_event_write(number) }
  }

  /// Whether the loop was woken while another loop slept in its place, and has not responded yet.
  var isRung: Bool { rung.load(ordering: .sequentiallyConsistent) }
}

// Sleeping in another loop. Called on the loop's thread.
extension WakeBell {
  /// Sets the descriptor that wakes the loop that is about to sleep in this one's place.
  func prepare(hostNumber: Int32) { self.hostNumber.store(hostNumber, ordering: .releasing) }

  /// Sets whether the other loop may sleep without checking ``isRung`` again.
  func noteHost(sleeps: Bool) { hostSleeps.store(sleeps, ordering: .sequentiallyConsistent) }

  /// Clears ``isRung`` and the counter; the caller must check for work afterwards.
  func silence() {
    guard rung.exchange(false, ordering: .acquiringAndReleasing) else { return }
    let number = number.load(ordering: .relaxed)
    guard number >= 0 else { return }
    _ = try? SystemCall.eventRead.makeUninterrupted { crl_event_read(number) }
  }
}
