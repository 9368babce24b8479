// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import RunLoopCore

// What else Foundation's class has, in its spelling.
extension Timer {
  /// Makes a timer that is in no mode yet and first fires at a date.
  ///
  /// The date becomes a date of the monotonic clock here, so that setting the wall clock does not move the timer.
  ///
  /// - Parameters:
  ///   - date: When the timer first fires. A date in the past, even `.distantPast`, means as soon as its loop runs.
  ///     `.distantFuture`, and a date that is not a number, mean never, unless ``fireDate`` is set.
  ///   - interval: Seconds between two dates. Zero or less counts as 0.0001 s. It has no meaning if the timer does not
  ///     repeat.
  ///   - repeats: Whether it fires again after each interval.
  ///   - block: Called on the loop's thread with the timer. It is released when the timer is invalid and no call-out
  ///     runs.
  ///
  /// - Precondition: The interval of a repeating timer is a number.
  ///
  /// The corresponding Foundation initializer is `Timer(fire:interval:repeats:block:)`.
  public convenience init(
    fire date: Date, interval: TimeInterval, repeats: Bool, block: @escaping @Sendable (Timer) -> Void
  ) {
    self.init(
      wallDate: date.timeIntervalSinceReferenceDate, interval: interval, repeats: repeats, attachment: nil,
      block: block)
  }

  /// When the timer fires next; in its own call-out, the date for which it fires.
  ///
  /// A date reads back equal to what was set, even `.distantFuture`. After a repeating timer has gone on, the date is
  /// taken from the wall clock when it is first asked for, and stays the same until the timer gets another date.
  /// Setting it works like setting `deadline`; an invalid timer keeps its last date. Can be used from any thread.
  ///
  /// The corresponding Foundation property is `fireDate`.
  ///
  /// - Complexity: O(log n) in the timers of each mode.
  public var fireDate: Date {
    get { Date(timeIntervalSinceReferenceDate: wallDate) }
    set { wallDate = newValue.timeIntervalSinceReferenceDate }
  }
}

// What a timer carries. Foundation has it for the initializers that take a target and a selector; those that take a
// block leave it empty.
extension Timer {
  /// Makes a timer that is in no mode yet, first fires at a date, and carries a value.
  ///
  /// It is like ``init(fire:interval:repeats:block:)``; ``userInfo`` returns the value.
  public convenience init(
    fire date: Date, interval: TimeInterval, userInfo: (any Sendable)?, repeats: Bool,
    block: @escaping @Sendable (Timer) -> Void
  ) {
    self.init(
      wallDate: date.timeIntervalSinceReferenceDate, interval: interval, repeats: repeats, attachment: userInfo,
      block: block)
  }

  /// Makes a timer that is in no mode yet, first fires after a number of seconds, and carries a value.
  ///
  /// It is like `init(timeInterval:repeats:block:)`; ``userInfo`` returns the value.
  public convenience init(
    timeInterval interval: TimeInterval, userInfo: (any Sendable)?, repeats: Bool,
    block: @escaping @Sendable (Timer) -> Void
  ) {
    self.init(timeInterval: interval, repeats: repeats, attachment: userInfo, block: block)
  }

  /// Makes a timer that carries a value, and adds it to the current thread's loop in the default mode.
  ///
  /// It is like `scheduledTimer(withTimeInterval:repeats:block:)`; ``userInfo`` returns the value.
  @discardableResult
  public static func scheduledTimer(
    withTimeInterval interval: TimeInterval, userInfo: (any Sendable)?, repeats: Bool,
    block: @escaping @Sendable (Timer) -> Void
  ) -> Timer {
    let timer = Timer(timeInterval: interval, userInfo: userInfo, repeats: repeats, block: block)
    RunLoop.current.add(timer, forMode: .default)
    return timer
  }

  /// The value that the timer carries; nil if there is none, or once the timer has ended.
  ///
  /// It is released with the timer's block. Can be used from any thread.
  ///
  /// The corresponding Foundation property is `userInfo`.
  public var userInfo: Any? { attachment }
}
