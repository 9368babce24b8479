// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The thread of a resident thread.
final class ResidentBody: Thread, @unchecked Sendable {
  // Sendable: the block and the core are written before the thread is started and given up by its last step, or instead
  // of a start; other threads read the core, and it is given up, under the lock.
  private var block: BareBlock?
  // Not a weak reference: an object that has one counts its references in the slow way.
  var core: ResidentCore?

  /// What the thread does.
  var work: (@Sendable () -> Void)? {
    get { nil }
    set { block = newValue.map(BareBlock.init) }
  }

  override var keeper: ResidentCore? { lock.withLock { core } }

  override func main() {
    // No frame holds the core: a thread that leaves by `exit()` gives the core up at its end.
    let words = block?.words
    words?.call()
  }

  override func finishWork() {
    core?.finishWork()
    letGo()
  }

  /// Ends the cycle of references: until then the core holds this thread, and this thread the core.
  func letGo() {
    block = nil
    // Released outside the lock.
    _ = lock.withLock { core.take() }
  }
}
