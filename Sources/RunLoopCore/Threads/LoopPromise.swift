// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

/// The loop of a thread that has an object of its own: others may have it before the thread has asked for it.
///
/// What is posted to it waits until the thread runs its loop, or is dropped when the thread ends without.
package final class LoopPromise: @unchecked Sendable {
  // Sendable: the variables are guarded by the lock.
  private let lock = Lock()
  private var made: RunLoop?
  private var isOver = false

  /// Promises a loop that is made when somebody asks, or one that there is.
  package init(_ loop: RunLoop? = nil) {
    made = loop
  }

  /// The thread's loop, made now if need be; nil once the thread has ended.
  package var loop: RunLoop? {
    lock.lock()
    defer { lock.unlock() }
    if made == nil, !isOver { made = RunLoop(threadID: 0, waiter: SystemWaiter.shared) }
    return made
  }

  /// Forgets the loop, which has ended while its thread goes on: whoever asks next gets a new one.
  func forgetLoop() {
    let former = lock.withLock { made.take() }
    withExtendedLifetime(former) {}
  }

  /// Makes this the promise that the calling thread keeps; the caller holds the promise until the thread has ended.
  package func install() {
    crl_promise_slot_set(Unmanaged.passUnretained(self).toOpaque())
  }

  /// The promise of the calling thread.
  static var installed: LoopPromise? {
    crl_promise_slot_get().map { Unmanaged<LoopPromise>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Ends the loop, whether its thread has ever asked for it or not.
  ///
  /// On its own thread, or anywhere if there never was one.
  package func end(onThread: Bool) {
    lock.lock()
    isOver = true
    let made = made
    lock.unlock()
    if onThread {
      RunLoop.detachCurrent()
      RunLoop.refuseCurrent()
      crl_promise_slot_set(nil)
    }
    if let made, !made.hasEnded { made.endWithThread() }
    // Held until here: the loop's end may have run anything.
    lock.lock()
    self.made = nil
    lock.unlock()
    withExtendedLifetime(made) {}
  }
}
