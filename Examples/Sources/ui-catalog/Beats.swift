// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// A 60 Hz timer in the common modes, which shows delays of the main thread.
@MainActor
final class Beats {
  private static let interval = Duration.nanoseconds(16_666_667)

  /// The number of times the timer has fired.
  private(set) var count = 0
  /// The number of its dates that were skipped.
  private(set) var missed = 0
  /// The longest time between two beats since the last reset, in milliseconds.
  private(set) var worst = 0
  private var last: SuspendingClock.Instant
  private let first: SuspendingClock.Instant

  init(_ whenBeating: @escaping @MainActor @Sendable (Beats) -> Void) {
    let loop = RunLoop.main
    last = loop.now
    first = loop.now.advanced(by: Self.interval)
    let timer = Timer(deadline: first, interval: Self.interval) { [weak self] timer in
      MainActor.assumeIsolated {
        guard let self else { return timer.invalidate() }
        self.beat(for: timer.deadline)
        whenBeating(self)
      }
    }
    loop.add(timer, forMode: .common)
  }

  /// Resets the longest time.
  func reset() {
    worst = 0
    last = RunLoop.main.now
  }

  private func beat(for date: SuspendingClock.Instant) {
    let now = RunLoop.main.now
    worst = max(worst, Int((now - last) / .milliseconds(1)))
    last = now
    count += 1
    missed = Int(((date - first) / Self.interval).rounded()) + 1 - count
  }
}
