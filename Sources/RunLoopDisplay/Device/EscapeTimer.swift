// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// Says when nothing has followed an escape for so long that it was a key.
///
/// It is parked while there is nothing to wait for, and wakes nobody then.
@MainActor
package final class EscapeTimer {
  private let timer: Timer
  private var isSet = false

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

  /// Lets the time begin anew, or takes it away.
  package func set(_ isWaiting: Bool) {
    guard isWaiting || isSet else { return }
    isSet = isWaiting
    if isWaiting { timer.move(after: TerminalSession.escapeDelay) } else { timer.park() }
  }

  /// Ends the timer.
  package func invalidate() { timer.invalidate() }
}
