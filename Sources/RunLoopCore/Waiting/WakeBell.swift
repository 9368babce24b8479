// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

/// The counter by which a loop is woken out of an epoll set, or another loop that sleeps in its place.
///
/// It is made when the loop first waits for descriptors or in another loop, is in every epoll set of the loop, and
/// stays open as long as the loop's object. So a thread that is about to wake the loop needs no lock to find it, and
/// never writes to a number that was closed and reused meanwhile: ``RunLoop/stop()`` and ``RunLoop/wakeUp()`` can be
/// called in a signal handler that has interrupted anything.
final class WakeBell: Sendable {
  /// The counter's number; −1 before it was made.
  ///
  /// Relaxed where the loop's thread or one that has taken the sleeper out of the loop's word reads it: the loop has
  /// acquired what it is watched by before it announced its sleep there.
  private let number = Atomic<Int32>(-1)
  /// The number of the descriptor that wakes the loop that sleeps in this one's place; −1: it watches the counter.
  private let hostNumber = Atomic<Int32>(-1)
  /// Whether the loop was woken out of another loop's sleep, which it has not answered.
  private let rung = Atomic<Bool>(false)
  /// Whether the other loop may sleep without looking at ``isRung`` again.
  private let hostSleeps = Atomic<Bool>(true)
  /// Guarded by the lock of the loop's table.
  @exclusivity(unchecked) nonisolated(unsafe) private var stored: WakeDescriptor?

  /// The counter, which is made now if needed.
  ///
  /// Requires the lock of the loop's table.
  func counter() throws(SystemError) -> WakeDescriptor {
    if let stored { return stored }
    let made = try WakeDescriptor()
    stored = made
    number.store(made.descriptor.number, ordering: .sequentiallyConsistent)
    return made
  }

  /// The counter's descriptor, if it was made.
  ///
  /// Requires the lock of the loop's table.
  var descriptor: OwnedDescriptor? { stored?.descriptor }
}

// Waking. Can be called from any thread and in a signal handler.
extension WakeBell {
  /// Ends the wait of the loop's thread in an epoll set.
  @inline(__always)
  func ring() {
    WakeBell.write(number.load(ordering: .relaxed))
    // If the loop next sleeps in another one, which watches the counter's level, it is read before.
    rung.store(true, ordering: .releasing)
  }

  /// Ends the sleep of the loop that sleeps in this one's place; returns false if no descriptor reaches it.
  ///
  /// - Parameter isHere: Whether the calling thread is the loop's: then the other loop is awake, and looks at
  ///   ``isRung`` before it sleeps unless it has said otherwise.
  func ringInHost(isHere: Bool) -> Bool {
    let host = hostNumber.load(ordering: .acquiring)
    let target = host >= 0 ? host : number.load(ordering: .acquiring)
    guard target >= 0 else { return false }
    rung.store(true, ordering: .sequentiallyConsistent)
    guard !isHere || host < 0 || hostSleeps.load(ordering: .sequentiallyConsistent) else { return true }
    WakeBell.write(target)
    // Again, because the loop may have read the counter between the two, and would not read it once more.
    rung.store(true, ordering: .releasing)
    return true
  }

  /// The write cannot fail: the counter would have to be near its limit.
  private static func write(_ number: Int32) {
    guard number >= 0 else { return }
    _ = try? SystemCall.eventWrite.makeUninterrupted { crl_event_write(number) }
  }

  /// Whether the loop was woken out of another loop's sleep, which it has not answered.
  var isRung: Bool { rung.load(ordering: .sequentiallyConsistent) }
}

// Sleeping in another loop. Called on the loop's thread.
extension WakeBell {
  /// Notes how the loop that is about to sleep in this one's place is woken.
  func prepare(hostNumber: Int32) { self.hostNumber.store(hostNumber, ordering: .releasing) }

  /// Notes whether the other loop may sleep without looking at ``isRung`` again.
  func noteHost(sleeps: Bool) { hostSleeps.store(sleeps, ordering: .sequentiallyConsistent) }

  /// Makes the bell quiet; the caller looks for work afterwards.
  func silence() {
    guard rung.exchange(false, ordering: .acquiringAndReleasing) else { return }
    let number = number.load(ordering: .relaxed)
    guard number >= 0 else { return }
    _ = try? SystemCall.eventRead.makeUninterrupted { crl_event_read(number) }
  }
}
