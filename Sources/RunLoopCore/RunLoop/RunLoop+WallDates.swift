// SPDX-License-Identifier: Apache-2.0

// Support for Foundation's run methods, which take dates of the wall clock in seconds since 2001. A date is converted
// to a tick once, so setting the wall clock does not lengthen a run.

extension RunLoop {
  /// Returns the tick at which the wall clock reads `date`, or one that is never reached if `date` is NaN.
  ///
  /// Can be called from any thread.
  package func tick(atWallDate date: Double) -> Tick { Tick(wallDate: date, offset: waiter.wallOffset) }

  /// Returns whether a tick has been reached; can be called from any thread.
  package func hasReached(_ tick: Tick) -> Bool { waiter.now >= tick }

  /// Runs a mode until a source is handled, a tick is reached, the run is stopped, or the mode is empty.
  ///
  /// If the tick has already been reached, the run is one pass without a wait. Returns `false` if no pass was made
  /// because the mode is empty or the loop's thread is stopping. Must be called on the loop's own thread.
  package func runOnce(_ mode: Mode, until limit: Tick) -> Bool {
    guard !stopFlag.isEnding else { return false }
    let now = waiter.now
    let timeout = (limit + -now.nanoseconds).nanoseconds
    let isEndless = limit == .never || timeout > Int64(Self.longestTimeout) * 1_000_000_000
    return enter(mode, for: isEndless ? .max : timeout, polls: limit <= now, returnsAfterSource: true) != nil
  }

  /// Returns whether a run of a mode would finish immediately; must be called on the loop's own thread.
  package func isFinished(_ name: Mode) -> Bool {
    guard !stopFlag.isEnding, let mode = table.withLock({ $0.modes[name] }) else { return true }
    return isEmpty(mode)
  }

  /// Returns the date of a mode's first timer, including timers being called, or `nil` if the mode has none.
  ///
  /// Can be called from any thread.
  ///
  /// - Complexity: O(1), plus O(n) in the number of timers being called.
  package func nextWallDate(forMode name: Mode) -> Double? {
    // The timer's lock precedes the table's. The timer may be released when this returns.
    let first = table.withLock { $0.modes[name]?.timers.first }
    return first?.wallDate
  }
}
