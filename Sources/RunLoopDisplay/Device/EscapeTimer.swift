// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// A timer that fires when input has been held back for the maximum time.
///
/// It is parked, and wakes no thread, while there is nothing to wait for.
@MainActor
package final class EscapeTimer {
  private let timer: Timer
  private var wait: InputParser.Wait?

  /// Creates a timer of the main loop in the common modes.
  package init(_ body: @escaping @MainActor @Sendable () -> Void) {
    // A repeating timer that is rescheduled when needed, and parked otherwise.
    timer = RunLoop.main.schedule(
      in: .seconds(3600), repeating: .seconds(3600), mode: .common,
      block: MainActor.handler { (timer: Timer) in
        timer.park()
        body()
      })
    timer.park()
  }

  /// Schedules the timer for what a parser waits for, or lets it continue if that has not changed.
  package func set(_ wait: InputParser.Wait?) {
    let before = self.wait
    self.wait = wait
    switch wait {
    case nil: if before != nil { timer.park() }
    case .more: timer.move(after: TerminalSession.escapeDelay)
    case .end: if wait != before { timer.move(after: TerminalSession.holdLimit) }
    }
  }

  package func invalidate() { timer.invalidate() }
}
