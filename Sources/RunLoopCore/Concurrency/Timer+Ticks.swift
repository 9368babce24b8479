// SPDX-License-Identifier: Apache-2.0

extension Timer {
  /// Returns the dates of a repeating timer as an asynchronous sequence.
  ///
  /// ```Swift
  /// for await date in Timer.ticks(every: .seconds(1), on: thread.runLoop) { draw(at: date) }
  /// ```
  ///
  /// The timer is added to the loop at once, and first fires one interval later. It keeps its phase. A task that is
  /// slower than the timer receives only the newest date, and not the dates that it missed. The sequence ends when the
  /// loop's thread ends, or at once if the thread has ended. The timer is invalidated when the sequence and its
  /// iterators are released. Can be called from any thread.
  ///
  /// - Parameters:
  ///   - interval: The time between two dates. Less than a microsecond counts as one.
  ///   - tolerance: How much later than its date the timer may fire, so that several timers can share one wake-up.
  ///     Negative counts as zero; at most half the interval is used.
  ///   - loop: The loop whose clock counts the time. Nothing arrives while it does not run in the mode.
  ///   - mode: The mode in which the timer fires.
  /// - Returns: The dates for which the timer has fired, by the loop's clock.
  ///
  /// In Combine the corresponding method of Foundation's timer is `publish(every:tolerance:on:in:options:)`.
  public static func ticks(
    every interval: Duration, tolerance: Duration = .zero, on loop: RunLoop, in mode: RunLoop.Mode = .common
  ) -> EventSequence<SuspendingClock.Instant> {
    let buffer = EventBuffer<SuspendingClock.Instant>(capacity: 1) { last, next in last = next }
    let timer = Timer(
      tick: .never, interval: max(usableInterval(interval), 1000), tolerance: Int64(saturating: tolerance)
    ) { [producer = EventProducer(buffer)] timer in producer.send(timer.deadline) }
    // The date is set once the timer is in the loop, because it is a date of the loop's clock.
    if !loop.takesNoItems, loop.offer(timer, forMode: mode) {
      timer.move(after: max(interval, .microseconds(1)))
    } else {
      timer.invalidate()
    }
    // Weakly: a loop that ends releases the timer, which ends the sequence.
    return EventSequence(buffer) { [weak timer] in timer?.invalidate() }
  }
}
