// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

/// The loop of a thread that has an object of its own: other threads may use it before the thread has asked for it.
///
/// What is posted to the loop waits until the thread runs it, or is dropped if the thread ends without a run.
package final class LoopPromise: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock.
  private let lock = Lock()
  private var made: RunLoop?
  private var isOver = false

  /// Promises a loop that is made when somebody asks for it, or a loop that exists.
  package init(_ loop: RunLoop? = nil) {
    made = loop
  }

  /// The thread's loop, which is made now if needed; nil once the thread has ended.
  package var loop: RunLoop? {
    lock.lock()
    defer { lock.unlock() }
    if made == nil, !isOver { made = RunLoop(threadID: 0, waiter: SystemWaiter.shared) }
    return made
  }

  /// Forgets the loop, which has ended while its thread goes on: the next caller that asks gets a new one.
  func forgetLoop() {
    let former = lock.withLock { made.take() }
    withExtendedLifetime(former) {}
  }

  /// Makes this the promise of the calling thread; the caller holds the promise until the thread has ended.
  package func install() {
    crl_promise_slot_set(Unmanaged.passUnretained(self).toOpaque())
  }

  /// The promise of the calling thread.
  static var installed: LoopPromise? {
    crl_promise_slot_get().map { Unmanaged<LoopPromise>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Ends the loop, whether its thread has ever asked for it or not.
  ///
  /// Called on the loop's own thread, or on any thread if there never was one.
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
    // Held until here, because the loop's end may have run any code.
    lock.lock()
    self.made = nil
    lock.unlock()
    withExtendedLifetime(made) {}
  }
}
