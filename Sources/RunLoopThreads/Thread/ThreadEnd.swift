// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The end of a thread, for threads that wait for it.
///
/// The thread itself keeps it until then, when its object may be gone.
final class ThreadEnd: Awaited, @unchecked Sendable {
  // Sendable: the listeners are guarded by the lock.

  /// One once the end has arrived.
  private let word = AwaitedWord(0)
  private let lock = Lock()
  private var listeners: [@Sendable () -> Void] = []
  // The rounds are used by the ending thread only.

  /// The round of thread-specific destructors in which the thread is called next.
  var round = 1
  /// The round in which other threads are notified of the end.
  ///
  /// It is the last round that tools leave to a program: by then Core Foundation has given up its loop and its data of
  /// the thread. For a thread that was made by other means it is not known how many rounds are left, so its end is
  /// noted with that of its object.
  var lastRound = 3

  var hasCome: Bool { word.value == 1 }
  var isOver: Bool { hasCome }

  /// Lets all waiting threads go on.
  func note() {
    word.finish(1)
    // A listener that came too early to see the end is in the list.
    let listeners = lock.withLock {
      defer { self.listeners = [] }
      return self.listeners
    }
    for listener in listeners { listener() }
  }

  /// Calls `listener` when the end has arrived, on the ending thread in its last destructor, or now if it has arrived.
  ///
  /// On that thread Core Foundation can no longer be used, so a listener must call no user code.
  func whenCome(_ listener: @escaping @Sendable () -> Void) {
    lock.lock()
    let hasCome = hasCome
    if !hasCome { listeners.append(listener) }
    lock.unlock()
    if hasCome { listener() }
  }

  func wait(until deadline: Tick, by looker: inout Looker) { word.wait(until: deadline, by: &looker) { $0 == 1 } }
}
