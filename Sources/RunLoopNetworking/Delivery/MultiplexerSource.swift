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
    lock.lock()
    users += 1
    var made: RunLoop.Source?
    if users == 1, !hasEnded {
      generation += 1
      let number = generation
      made = RunLoop.Source(label: label, cancel: { [weak self] _, _ in self?.loopMayHaveEnded(number) }) {
        [weak self] in self?.deliver()
      }
      source = made
    }
    lock.unlock()
    guard let made else { return }
    for mode in modes where !loop.add(made, forMode: mode) { end() }
    // What was posted before it was in the loop has woken nobody.
    guard lock.withLock({ source === made && !waiting.isEmpty }) else { return }
    made.signal()
    loop.wakeUp()
  }

  /// An operation has reported its last.
  ///
  /// Nobody wants what waits when the last one leaves: whoever comes back posts again. It would keep this source alive, and
  /// the first post of the next user would not be the first.
  func leave() {
    lock.lock()
    users -= 1
    var left: RunLoop.Source?
    var dropped: [@Sendable () -> Void] = []
    if users == 0 {
      swap(&left, &source)
      swap(&dropped, &waiting)
    }
    lock.unlock()
    left?.invalidate()
    withExtendedLifetime(dropped) {}
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
    guard let source else { return lock.unlock() }
    waiting.append(body)
    let isFirst = waiting.count == 1
    lock.unlock()
    if isFirst {
      source.signal()
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
    guard lock.withLock({ source != nil && generation == number }) else { return }
    end()
  }

  /// Delivers what is left here, and everything later where it comes from.
  private func end() {
    lock.lock()
    hasEnded = true
    let left = source
    source = nil
    lock.unlock()
    deliver()
    left?.invalidate()
  }
}
