// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

/// The loop of a thread with a thread object, which other threads may use before the thread accesses it.
///
/// Posts to the loop wait until the thread runs it, or are dropped if the thread ends without a run.
package final class LoopPromise: @unchecked Sendable {
  // Sendable: the lock guards the variables.
  private let lock = Lock()
  private var made: RunLoop?
  private var isOver = false

  /// Creates a promise of an existing loop or, if `loop` is `nil`, of one that is created on first access.
  package init(_ loop: RunLoop? = nil) {
    made = loop
  }

  /// The thread's loop, created if necessary, or `nil` if the thread has ended.
  package var loop: RunLoop? {
    lock.lock()
    defer { lock.unlock() }
    if made == nil, !isOver { made = RunLoop(threadID: 0, waiter: SystemWaiter.shared) }
    return made
  }

  /// Forgets a loop that has ended while its thread continues, so that the next access creates a new one.
  func forgetLoop() {
    let former = lock.withLock { made.take() }
    withExtendedLifetime(former) {}
  }

  /// Makes this the calling thread's promise, which the caller must hold until the thread has ended.
  package func install() {
    crl_promise_slot_set(Unmanaged.passUnretained(self).toOpaque())
  }

  /// The calling thread's promise.
  static var installed: LoopPromise? {
    crl_promise_slot_get().map { Unmanaged<LoopPromise>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Ends the loop, whether or not its thread has ever accessed it.
  ///
  /// Must be called on the loop's own thread, or on any thread if there never was one.
  package func end(onThread: Bool) {
    lock.lock()
    isOver = true
    let made = made
    lock.unlock()
    if onThread {
      RunLoop.detachCurrent()
      RunLoop.rejectCurrent()
      crl_promise_slot_set(nil)
    }
    if let made, !made.hasEnded { made.endWithThread() }
    // Held until here because the loop's end may have run arbitrary code.
    lock.lock()
    self.made = nil
    lock.unlock()
    withExtendedLifetime(made) {}
  }
}
