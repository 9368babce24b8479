// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopThreads
import Synchronization

/// Calls an action when nothing was reported for a while, on the loop of the thread that created it.
///
/// This is the example of the article "Testing code that waits", and does not depend on virtual time.
final class Debouncer: Sendable {
  private let timer: Timer
  private let delay: Duration

  init(delay: Duration, on loop: RunLoop = .current, action: @escaping @Sendable () -> Void) {
    self.delay = delay
    timer = loop.schedule(in: delay, repeating: .seconds(1 << 30)) { timer in
      timer.park()
      action()
    }
    timer.park()
  }

  func report() { timer.move(after: delay) }

  deinit { timer.invalidate() }
}
