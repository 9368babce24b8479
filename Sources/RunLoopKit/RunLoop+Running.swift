// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import RunLoopCore

// Foundation's runs, which take dates of the wall clock and know no errors. On a thread that is not the loop's they do
// nothing, and report so.
extension RunLoop {
  /// Runs the loop in the default mode until a date.
  ///
  /// If the mode is empty, it returns at once. With a date that has passed, the run is one pass that does not wait.
  /// `stop()` ends one turn of the run, and the next begins. The date becomes a date of the monotonic clock at the
  /// call, so that setting the wall clock makes the run neither longer nor shorter; `.distantFuture` means
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
  /// A timer does not end the run. With a date that has passed, the run is one pass that does not wait. The date
  /// becomes a date of the monotonic clock at the call; `.distantFuture` means indefinitely. Must be called on the
  /// loop's own thread.
  ///
  /// - Returns: False if there was nothing to run: the mode is empty or is `.common`, the loop's thread is stopping, or
  ///   the calling thread is another. Otherwise true, whatever ended the run, even a stop.
  ///
  /// The corresponding Foundation method is `run(mode:before:)`.
  @discardableResult
  public func run(mode: Mode, before limitDate: Date) -> Bool {
    guard mayRun("run(mode:before:)") else { return false }
    return runOnce(mode, until: tick(atWallDate: limitDate.timeIntervalSinceReferenceDate))
  }

  /// Runs the loop in one mode until a source or port was handled, or until a date, and does not report whether it did.
  ///
  /// It is like ``run(mode:before:)``. The corresponding Foundation method is `acceptInput(forMode:before:)`.
  public func acceptInput(forMode mode: Mode, before limitDate: Date) {
    guard mayRun("acceptInput(forMode:before:)") else { return }
    _ = runOnce(mode, until: tick(atWallDate: limitDate.timeIntervalSinceReferenceDate))
  }

  /// Runs the loop in the mode of a name, as Foundation on Linux spells it.
  ///
  /// It is like ``acceptInput(forMode:before:)-(RunLoop.Mode,_)``.
  @_disfavoredOverload
  public func acceptInput(forMode mode: String, before limitDate: Date) {
    acceptInput(forMode: Mode(mode), before: limitDate)
  }
}

extension RunLoop {
  /// Makes one pass of a mode, without a wait, and returns when its first timer is due.
  ///
  /// The pass fires the timers that are due and handles at most one source. Must be called on the loop's own thread. On
  /// any other thread there is no pass.
  ///
  /// - Returns: The date of the first timer; `.distantFuture` if the mode has only other items; nil if it is empty, the
  ///   loop's thread is stopping, or the calling thread is another.
  ///
  /// The corresponding Foundation method is `limitDate(forMode:)`.
  public func limitDate(forMode mode: Mode) -> Date? {
    guard mayRun("limitDate(forMode:)"), runOnce(mode, until: .distantPast), !isFinished(mode) else { return nil }
    return nextFireDate(forMode: mode) ?? .distantFuture
  }

  /// The date at which the first timer of a mode is due, even one that is being called; nil without one.
  ///
  /// Can be called from any thread. It is `nextDeadline(forMode:)` by the wall clock.
  ///
  /// - Complexity: O(1), and O(n) in the timers that are being called.
  public func nextFireDate(forMode mode: Mode) -> Date? {
    nextWallDate(forMode: mode).map(Date.init(timeIntervalSinceReferenceDate:))
  }
}
