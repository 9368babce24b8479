// SPDX-License-Identifier: Apache-2.0

internal import CRunLoopTerminal
import RunLoopCore

/// Keeps the output that is captured while a terminal is taken from filling memory.
///
/// It looks in each pass of the main loop, and a second after a look that found new output, as other threads may write
/// while the loop waits. Each look keeps the last mebibyte of the output and frees the rest. Nothing limits what is
/// written between two looks. If there is no output, it wakes no thread.
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
    // Repeating, so that it can be set again; parked in between.
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

  /// Takes new output out of the file that receives it, and sets the timer if there was any.
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

  /// Ends the looks.
  func invalidate() {
    observer.invalidate()
    timer.invalidate()
  }

  /// Refers to the owner of the items, which do not keep it.
  @MainActor
  private final class Look {
    weak var owner: CapturedOutput?
  }
}
