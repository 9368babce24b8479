// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// The timer by which a pipeline commits when its loop does not come to its wait, or came there too early.
///
/// It is in the common modes while it has a date, and keeps them alive only then. It is guarded by its pipeline's lock.
struct FrameClock {
  private let loop: RunLoop
  private let timer: Timer
  private var isArmed = false

  /// Makes a clock without a date.
  ///
  /// - Parameter whenDue: Called on the loop's thread when the date has arrived, and again whenever the clock was set
  ///   anew.
  init(loop: RunLoop, whenDue: @escaping @Sendable () -> Void) {
    self.loop = loop
    // A timer that fires once would end with its first date. This one's dates are all set by hand.
    timer = Timer(deadline: Tick.never.instant, interval: .seconds(RunLoop.longestInterval)) { _ in whenDue() }
  }

  /// Sets the date; a sleeping loop takes it into account at once.
  mutating func arm(at date: Tick) {
    timer.deadline = date.instant
    if !isArmed { isArmed = loop.add(timer, forMode: .common) }
  }

  /// Takes the date away.
  ///
  /// The loop's thread. A run that the timer alone has kept alive finishes.
  mutating func disarm() {
    guard isArmed else { return }
    isArmed = false
    loop.remove(timer, forMode: .common)
    loop.wakeUpIfEmpty()
  }

  /// Ends the timer, which releases its block unless that runs.
  func invalidate() { timer.invalidate() }
}

extension RunLoop {
  /// As long as a run may last: about sixteen years, in seconds.
  fileprivate static let longestInterval = 504_911_232
}
