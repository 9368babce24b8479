// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// Fires when input was held back for as long as it may be.
///
/// It is parked while there is nothing to wait for, and wakes no thread then.
@MainActor
package final class EscapeTimer {
  private let timer: Timer
  private var wait: InputParser.Wait?

  /// Makes a timer of the main loop, in the common modes.
  package init(_ body: @escaping @MainActor @Sendable () -> Void) {
    // Repeating, so that it can be set again; parked in between.
    timer = RunLoop.main.schedule(
      in: .seconds(3600), repeating: .seconds(3600), mode: .common,
      block: MainActor.handler { (timer: Timer) in
        timer.park()
        body()
      })
    timer.park()
  }

  /// Sets the time for what a parser waits for; if it still waits for the same end, the time continues.
  package func set(_ wait: InputParser.Wait?) {
    let before = self.wait
    self.wait = wait
    switch wait {
    case nil: if before != nil { timer.park() }
    case .more: timer.move(after: TerminalSession.escapeDelay)
    case .end: if wait != before { timer.move(after: TerminalSession.holdLimit) }
    }
  }

  /// Ends the timer.
  package func invalidate() { timer.invalidate() }
}
