// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The thread object behind a resident thread.
final class ResidentBody: Thread, @unchecked Sendable {
  // Sendable: the block and the core are written before the thread starts. They are cleared by the thread's last step,
  // or when the start fails. Other threads read the core with the lock held, which is also required to clear it.
  private var block: BareBlock?
  // Not weak, because reference counting is slower for objects that have weak references.
  var core: ResidentCore?

  /// The block that the thread runs.
  var work: (@Sendable () -> Void)? {
    get { nil }
    set { block = newValue.map(BareBlock.init) }
  }

  override var keeper: ResidentCore? { lock.withLock { core } }

  override func main() {
    // No frame retains the core, so a thread that leaves by `exit()` still releases it at its end.
    let words = block?.words
    words?.call()
  }

  override func finishWork() {
    core?.finishWork()
    letGo()
  }

  /// Breaks the reference cycle between this thread and its core.
  func letGo() {
    block = nil
    // Released outside the lock.
    _ = lock.withLock { core.take() }
  }
}
