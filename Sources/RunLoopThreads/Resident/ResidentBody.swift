// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The thread of a resident thread.
final class ResidentBody: Thread, @unchecked Sendable {
  // Sendable: the block and the core are written before the thread is started and given up by its last step, or instead of a
  // start; the reference to the core for others is weak, and written before anybody has it.
  private var block: BareBlock?
  private var ownCore: ResidentCore?
  private weak var sharedCore: ResidentCore?

  var core: ResidentCore? {
    get { sharedCore }
    set {
      ownCore = newValue
      sharedCore = newValue
    }
  }

  /// What the thread does.
  var work: (@Sendable () -> Void)? {
    get { nil }
    set { block = newValue.map(BareBlock.init) }
  }

  override var keeper: ResidentCore? { sharedCore }

  override func main() {
    // No frame holds the core: a thread that leaves by `exit()` gives it up at its end.
    let words = block?.words
    words?.call()
  }

  override func finishWork() {
    ownCore?.finishWork()
    letGo()
  }

  /// The core holds this thread, and this thread the core, until then.
  func letGo() {
    block = nil
    ownCore = nil
  }
}
