// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import RunLoopCore

// Further members of Foundation's class, with the same signatures.
extension Timer {
  /// Creates a timer that is not in any mode and first fires at a date.
  ///
  /// The date is converted to the monotonic clock here, so that changing the wall clock does not move the timer.
  ///
  /// - Parameters:
  ///   - date: The date at which the timer first fires. A date in the past, even `.distantPast`, means as soon as its
  ///     loop runs. `.distantFuture`, or a date that is not a number, means never, unless ``fireDate`` is set.
  ///   - interval: The number of seconds between two dates. Zero or less counts as 0.0001 s. Ignored if the timer does
  ///     not repeat.
  ///   - repeats: Whether the timer fires again after each interval.
  ///   - block: A closure called on the loop's thread with the timer. It is released once the timer is invalid and not
  ///     being called.
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

  /// The date at which the timer next fires or, in its own call-out, the date for which it fires.
  ///
  /// A date that was set reads back as an equal value, even `.distantFuture`. After a repeating timer has advanced, the
  /// date is computed from the wall clock when it is first read, and stays the same until the timer's date changes.
  /// Setting it has the same effect as setting `deadline`. An invalid timer keeps its date. Can be used from any
  /// thread.
  ///
  /// The corresponding Foundation property is `fireDate`.
  ///
  /// - Complexity: O(log n), where n is the number of timers in each mode.
  public var fireDate: Date {
    get { Date(timeIntervalSinceReferenceDate: wallDate) }
    set { wallDate = newValue.timeIntervalSinceReferenceDate }
  }
}

// Values attached to timers. In Foundation, only the initializers that take a target and a selector provide one.
extension Timer {
  /// Creates a timer that is not in any mode, first fires at a date, and carries a value.
  ///
  /// It behaves like ``init(fire:interval:repeats:block:)``, and ``userInfo`` returns the value.
  public convenience init(
    fire date: Date, interval: TimeInterval, userInfo: (any Sendable)?, repeats: Bool,
    block: @escaping @Sendable (Timer) -> Void
  ) {
    self.init(
      wallDate: date.timeIntervalSinceReferenceDate, interval: interval, repeats: repeats, attachment: userInfo,
      block: block)
  }

  /// Creates a timer that is not in any mode, first fires after an interval, and carries a value.
  ///
  /// It behaves like `init(timeInterval:repeats:block:)`, and ``userInfo`` returns the value.
  public convenience init(
    timeInterval interval: TimeInterval, userInfo: (any Sendable)?, repeats: Bool,
    block: @escaping @Sendable (Timer) -> Void
  ) {
    self.init(timeInterval: interval, repeats: repeats, attachment: userInfo, block: block)
  }

  /// Creates a timer that carries a value, and adds it to the current thread's loop in the default mode.
  ///
  /// It behaves like `scheduledTimer(withTimeInterval:repeats:block:)`, and ``userInfo`` returns the value.
  @discardableResult
  public static func scheduledTimer(
    withTimeInterval interval: TimeInterval, userInfo: (any Sendable)?, repeats: Bool,
    block: @escaping @Sendable (Timer) -> Void
  ) -> Timer {
    let timer = Timer(timeInterval: interval, userInfo: userInfo, repeats: repeats, block: block)
    RunLoop.current.add(timer, forMode: .default)
    return timer
  }

  /// The value that the timer carries, or `nil` if there is none or the timer has ended.
  ///
  /// It is released with the timer's block. Can be used from any thread.
  ///
  /// The corresponding Foundation property is `userInfo`.
  public var userInfo: Any? { attachment }
}
