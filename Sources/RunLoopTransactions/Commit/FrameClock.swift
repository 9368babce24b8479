// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// A timer that makes a pipeline commit if its loop does not reach its wait, or reached it too early.
///
/// The timer is in the common modes, and keeps them alive, only while it is armed. The pipeline's lock guards it.
struct FrameClock {
  private let loop: RunLoop
  private let timer: Timer
  private var isArmed = false

  /// Creates a disarmed clock.
  ///
  /// - Parameter whenDue: A closure called on the loop's thread each time the clock reaches the date it was armed for.
  init(loop: RunLoop, whenDue: @escaping @Sendable () -> Void) {
    self.loop = loop
    // A one-shot timer would end after its first date. This one repeats, and each of its dates is set explicitly.
    timer = Timer(deadline: Tick.never.instant, interval: .seconds(RunLoop.longestInterval)) { _ in whenDue() }
  }

  /// Sets the date, which takes effect immediately even if the loop is sleeping.
  mutating func arm(at date: Tick) {
    timer.deadline = date.instant
    if !isArmed { isArmed = loop.add(timer, forMode: .common) }
  }

  /// Disarms the clock.
  ///
  /// Called on the loop's thread. A run that only the timer kept alive finishes.
  mutating func disarm() {
    guard isArmed else { return }
    isArmed = false
    loop.remove(timer, forMode: .common)
    loop.wakeUpIfEmpty()
  }

  /// Invalidates the timer, which releases its closure unless it is running.
  func invalidate() { timer.invalidate() }
}

extension RunLoop {
  /// The longest duration of a run, in seconds: about sixteen years.
  fileprivate static let longestInterval = 504_911_232
}
