// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// Brings what a client has for one of its users' loops there: a source of version 0, signalled once for a batch.
///
/// It is in the loop as long as an operation may have something to report.
final class MultiplexerSource: @unchecked Sendable {
  // Sendable: the lock guards what changes.

  let loop: RunLoop
  let modes: [RunLoop.Mode]
  /// What the loop's description calls it.
  private let label: StaticString
  private let lock = Lock()
  private var waiting: [@Sendable () -> Void] = []
  private var source: RunLoop.Source?
  private var users = 0
  private var hasEnded = false
  /// Counts the sources, so that one that goes late is not taken for the one that is there.
  private var generation = 0

  init(loop: RunLoop, modes: [RunLoop.Mode], label: StaticString = "HTTP.MultiplexerSource") {
    self.loop = loop
    self.modes = modes
    self.label = label
  }

  /// An operation may report something from now on.
  func enter() {
    noteUser()
    settle()
  }

  /// An operation has reported its last.
  ///
  /// Nobody wants what waits when the last one leaves: whoever comes back posts again. It would keep this source alive,
  /// and the first post of the next user would not be the first.
  func leave() {
    dropUser()
    settle()
  }

  // The two halves of entering and leaving, for those who note a user under a lock of their own, and settle outside it.
  // As the count follows that lock, it does not matter whose settling comes first.

  func noteUser() { lock.withLock { users += 1 } }
  func dropUser() { lock.withLock { users -= 1 } }

  /// Brings the source to the loop if there are users, and takes it away if there are none.
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
    // What was posted before it was in the loop has woken nobody.
    guard lock.withLock({ source === made && !waiting.isEmpty }) else { return }
    made.signal()
    loop.wakeUp()
  }

  /// Calls a block on the loop; here if the loop has ended.
  ///
  /// The block of somebody who has not entered yet, or has left, is dropped.
  func post(_ body: @escaping @Sendable () -> Void) {
    lock.lock()
    guard !hasEnded else {
      lock.unlock()
      return body()
    }
    guard users > 0 else { return lock.unlock() }
    waiting.append(body)
    // One that is not there yet is signalled when it is.
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

  /// The source has left a mode: because the loop's thread ends, or because nobody uses it.
  private func loopMayHaveEnded(_ number: Int) {
    if let gone = lock.withLock({ generation == number ? source : nil }) { end(gone) }
  }

  /// Delivers what is left here, and everything later where it comes from; nothing if the source was taken away by us.
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
