// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The end of a thread, which other threads can wait for.
///
/// The thread keeps this alive after its object may have been released.
final class ThreadEnd: Awaited, @unchecked Sendable {
  // Sendable: the lock guards the listeners. Only the ending thread uses the rounds.

  /// Set to 1 when the thread has ended.
  private let word = AwaitedWord(0)
  private let lock = Lock()
  private var listeners: [@Sendable () -> Void] = []

  /// The round of thread-specific destructors that calls the thread next.
  var round = 1
  /// The round in which other threads are notified of the end.
  ///
  /// It is the last round that is left to a program under tools: by then, Core Foundation has released its loop and
  /// data for the thread. For a thread created by other code, the number of remaining rounds is unknown, so its end is
  /// signaled together with the end of its object.
  var lastRound = 3

  var hasCome: Bool { word.value == 1 }
  var isOver: Bool { hasCome }

  /// Wakes all waiting threads.
  func note() {
    word.finish(1)
    // The list contains every listener that was added before the end was visible.
    let listeners = lock.withLock {
      defer { self.listeners = [] }
      return self.listeners
    }
    for listener in listeners { listener() }
  }

  /// Calls `listener` at the end, on the ending thread in its last destructor, or immediately if the thread has ended.
  ///
  /// Core Foundation can no longer be used on that thread by then, so a listener must not call user code.
  func whenCome(_ listener: @escaping @Sendable () -> Void) {
    lock.lock()
    let hasCome = hasCome
    if !hasCome { listeners.append(listener) }
    lock.unlock()
    if hasCome { listener() }
  }

  func wait(until deadline: Tick, by looker: inout Looker) { word.wait(until: deadline, by: &looker) { $0 == 1 } }
}
