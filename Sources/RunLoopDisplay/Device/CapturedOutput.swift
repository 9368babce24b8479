// SPDX-License-Identifier: Apache-2.0

internal import CRunLoopTerminal
import RunLoopCore

/// Limits the memory used by output that is captured while a terminal is in use.
///
/// It checks the output in each pass of the main loop, and again one second after new output was found, because other
/// threads may write while the loop waits. Each check keeps the last mebibyte and frees the rest. There is no limit on
/// output between two checks. Without output, no thread is woken.
@MainActor
final class CapturedOutput {
  private let observer: RunLoop.Observer
  private let timer: Timer
  private var hasGrown = false
  private var isTimerSet = false

  init() {
    let look = Look()
    observer = RunLoop.Observer(
      activities: .beforeTimers, handler: MainActor.handler { _, _ in look.owner?.look() })
    // A repeating timer that is rescheduled when needed, and parked otherwise.
    timer = RunLoop.main.schedule(
      in: .seconds(3600), repeating: .seconds(3600), mode: .common,
      block: MainActor.handler { (timer: Timer) in
        timer.park()
        look.owner?.timerFired()
      })
    timer.park()
    look.owner = self
    RunLoop.main.add(observer, forMode: .common)
  }

  /// Reads new output from the file that captures it, and starts the timer if there was any.
  func look() {
    if crl_terminal_trim_output() != 0 { hasGrown = true }
    guard hasGrown, !isTimerSet else { return }
    hasGrown = false
    isTimerSet = true
    timer.move(after: .seconds(1))
  }

  private func timerFired() {
    isTimerSet = false
    look()
  }

  /// Stops the checks.
  func invalidate() {
    observer.invalidate()
    timer.invalidate()
  }

  /// A weak reference to the owner, so that the observer and the timer do not retain it.
  @MainActor
  private final class Look {
    weak var owner: CapturedOutput?
  }
}
