// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// Delivers callbacks to a user's loop through a version 0 source, which is signaled once per batch.
///
/// The source is in the loop as long as any operation may have something to report.
final class MultiplexerSource: @unchecked Sendable {
  // Sendable: the lock guards the mutable state.

  let loop: RunLoop
  let modes: [RunLoop.Mode]
  /// The label of the source in the loop's description.
  private let label: StaticString
  private let lock = Lock()
  private var waiting: [@Sendable () -> Void] = []
  private var source: RunLoop.Source?
  private var users = 0
  private var hasEnded = false
  /// The number of sources created so far, which distinguishes the current source from one that is cancelled late.
  private var generation = 0

  init(loop: RunLoop, modes: [RunLoop.Mode], label: StaticString = "HTTP.MultiplexerSource") {
    self.loop = loop
    self.modes = modes
    self.label = label
  }

  /// Registers an operation that may report from now on.
  func enter() {
    noteUser()
    settle()
  }

  /// Unregisters an operation after its last report.
  ///
  /// When the last operation leaves, pending closures are dropped. They would keep this object alive and keep the next
  /// user's first post from signaling the source.
  func leave() {
    dropUser()
    settle()
  }

  // The two halves of `enter()` and `leave()`, for callers that register under a lock of their own and settle outside
  // it. The count follows that lock, so the order of the calls to `settle()` does not matter.

  func noteUser() { lock.withLock { users += 1 } }
  func dropUser() { lock.withLock { users -= 1 } }

  /// Adds the source to the loop if there are users, or removes it if there are none.
  func settle() {
    lock.lock()
    var made: RunLoop.Source?
    var left: RunLoop.Source?
    var dropped: [@Sendable () -> Void] = []
    if users == 0 {
      swap(&left, &source)
      swap(&dropped, &waiting)
    } else if source == nil, !hasEnded {
      generation += 1
      let number = generation
      made = RunLoop.Source(label: label, cancel: { [weak self] _, _ in self?.loopMayHaveEnded(number) }) {
        [weak self] in self?.deliver()
      }
      source = made
    }
    lock.unlock()
    left?.invalidate()
    withExtendedLifetime(dropped) {}
    guard let made else { return }
    for mode in modes where !loop.offer(made, forMode: mode) { return end(made) }
    // Closures posted before the source was added have not woken the loop.
    guard lock.withLock({ source === made && !waiting.isEmpty }) else { return }
    made.signal()
    loop.wakeUp()
  }

  /// Calls a closure on the loop, or on the current thread if the loop has ended.
  ///
  /// The closure is dropped if no user is registered.
  func post(_ body: @escaping @Sendable () -> Void) {
    lock.lock()
    guard !hasEnded else {
      lock.unlock()
      return body()
    }
    guard users > 0 else { return lock.unlock() }
    waiting.append(body)
    // A source that is not in the loop yet is signaled once it has been added.
    let signalled = waiting.count == 1 ? source : nil
    lock.unlock()
    if let signalled {
      signalled.signal()
      loop.wakeUp()
    }
  }

  private func deliver() {
    lock.lock()
    let bodies = waiting
    waiting = []
    lock.unlock()
    for body in bodies { body() }
  }

  /// Called when the source has left a mode, because the loop's thread is ending or because the source is unused.
  private func loopMayHaveEnded(_ number: Int) {
    if let gone = lock.withLock({ generation == number ? source : nil }) { end(gone) }
  }

  /// Delivers what is left on this thread, as all later posts will be, unless the source was removed on purpose.
  private func end(_ gone: RunLoop.Source) {
    lock.lock()
    guard source === gone else { return lock.unlock() }
    hasEnded = true
    source = nil
    lock.unlock()
    deliver()
    gone.invalidate()
  }
}
