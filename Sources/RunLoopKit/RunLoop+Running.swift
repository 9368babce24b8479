// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import RunLoopCore

// Foundation's methods for running a loop, which take wall-clock dates and do not throw. On threads other than the
// loop's, they have no effect, which is reported.
extension RunLoop {
  /// Runs the loop in the default mode until a date.
  ///
  /// If the mode is empty, this returns immediately. If the date has passed, the loop makes one pass without waiting.
  /// `stop()` ends one turn of the run, after which the next begins. The date is converted to the monotonic clock when
  /// this is called, so that changing the wall clock makes the run neither longer nor shorter; `.distantFuture` means
  /// indefinitely. Must be called on the loop's own thread. On any other thread, and while the loop's thread is
  /// stopping, it has no effect.
  ///
  /// The corresponding Foundation method is `run(until:)`.
  public func run(until limitDate: Date) {
    guard mayRun("run(until:)") else { return }
    let limit = tick(atWallDate: limitDate.timeIntervalSinceReferenceDate)
    while runOnce(.default, until: limit), !hasReached(limit) {}
  }

  /// Runs the loop in one mode until a source or port was handled, or until a date.
  ///
  /// A timer does not end the run. If the date has passed, the loop makes one pass without waiting. The date is
  /// converted to the monotonic clock when this is called; `.distantFuture` means indefinitely. Must be called on the
  /// loop's own thread.
  ///
  /// - Returns: `false` if there was nothing to run, because the mode is empty or `.common`, the loop's thread is
  ///   stopping, or this is another thread. Otherwise `true`, whatever ended the run, including a stop.
  ///
  /// The corresponding Foundation method is `run(mode:before:)`.
  @discardableResult
  public func run(mode: Mode, before limitDate: Date) -> Bool {
    guard mayRun("run(mode:before:)") else { return false }
    return runOnce(mode, until: tick(atWallDate: limitDate.timeIntervalSinceReferenceDate))
  }

  /// Runs the loop in one mode until a source or port was handled, or until a date, without reporting which.
  ///
  /// It behaves like ``run(mode:before:)``. The corresponding Foundation method is `acceptInput(forMode:before:)`.
  public func acceptInput(forMode mode: Mode, before limitDate: Date) {
    guard mayRun("acceptInput(forMode:before:)") else { return }
    _ = runOnce(mode, until: tick(atWallDate: limitDate.timeIntervalSinceReferenceDate))
  }

  /// Runs the loop in the mode with a given name, as in Foundation on Linux.
  ///
  /// It behaves like ``acceptInput(forMode:before:)-(RunLoop.Mode,_)``.
  @_disfavoredOverload
  public func acceptInput(forMode mode: String, before limitDate: Date) {
    acceptInput(forMode: Mode(mode), before: limitDate)
  }
}

extension RunLoop {
  /// Makes one pass in a mode without waiting, and returns the date at which its first timer is due.
  ///
  /// The pass fires the timers that are due and handles at most one source. Must be called on the loop's own thread;
  /// on any other thread, there is no pass.
  ///
  /// - Returns: The date of the first timer, `.distantFuture` if the mode has only other items, or `nil` if it is
  ///   empty, the loop's thread is stopping, or this is another thread.
  ///
  /// The corresponding Foundation method is `limitDate(forMode:)`.
  public func limitDate(forMode mode: Mode) -> Date? {
    guard mayRun("limitDate(forMode:)"), runOnce(mode, until: .distantPast), !isFinished(mode) else { return nil }
    return nextFireDate(forMode: mode) ?? .distantFuture
  }

  /// The date at which the first timer of a mode is due, including timers being called, or `nil` if there is none.
  ///
  /// Can be called from any thread. It is `nextDeadline(forMode:)` in terms of the wall clock.
  ///
  /// - Complexity: O(1), or O(n) in the number of timers that are being called.
  public func nextFireDate(forMode mode: Mode) -> Date? {
    nextWallDate(forMode: mode).map(Date.init(timeIntervalSinceReferenceDate:))
  }
}
