// SPDX-License-Identifier: Apache-2.0

// Support for Foundation's spelling of a run, which takes dates of the wall clock in seconds since 2001. They are
// turned into ticks once: a run does not become longer because the wall clock is set.

extension RunLoop {
  /// The tick at which the wall clock says `date`; a value that is not a number is never reached.
  ///
  /// Can be called from any thread.
  package func tick(atWallDate date: Double) -> Tick { Tick(wallDate: date, offset: waiter.wallOffset) }

  /// Whether a tick has been reached; can be called from any thread.
  package func hasReached(_ tick: Tick) -> Bool { waiter.now >= tick }

  /// Runs a mode until a source was handled, a tick is reached, the run is stopped, or nothing is left.
  ///
  /// If the tick has been reached already, the run is one pass without a wait. Returns false if there was no pass,
  /// because the mode is empty or the loop's thread is stopping. Called on the loop's own thread.
  package func runOnce(_ mode: Mode, until limit: Tick) -> Bool {
    guard !stopFlag.isEnding else { return false }
    let now = waiter.now
    let timeout = (limit + -now.nanoseconds).nanoseconds
    let isEndless = limit == .never || timeout > Int64(Self.longestTimeout) * 1_000_000_000
    return enter(mode, for: isEndless ? .max : timeout, polls: limit <= now, returnsAfterSource: true) != nil
  }

  /// Whether a run of a mode would be finished at once; called on the loop's own thread.
  package func isFinished(_ name: Mode) -> Bool {
    guard !stopFlag.isEnding, let mode = table.withLock({ $0.modes[name] }) else { return true }
    return isEmpty(mode)
  }

  /// The date of a mode's first timer, even one that is being called; nil without one.
  ///
  /// Can be called from any thread.
  ///
  /// - Complexity: O(1), and O(n) in the timers that are being called.
  package func nextWallDate(forMode name: Mode) -> Double? {
    // The timer's lock comes before the table's, and the timer may be gone by the end of this.
    let first = table.withLock { $0.modes[name]?.timers.first }
    return first?.wallDate
  }
}
