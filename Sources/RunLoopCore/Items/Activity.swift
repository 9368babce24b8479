// SPDX-License-Identifier: Apache-2.0

extension RunLoop {
  /// The stages of a run at which an observer can be called.
  ///
  /// The raw values are Core Foundation's `CFRunLoopActivity`.
  public struct Activity: OptionSet, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt

    /// Makes a value from its raw value.
    public init(rawValue: UInt) {
      self.rawValue = rawValue
    }

    /// A run begins, before its first pass.
    public static let entry = Activity(rawValue: 1 << 0)
    /// The top of a pass.
    ///
    /// Timers do not run now: a timer that is due runs after the wait.
    public static let beforeTimers = Activity(rawValue: 1 << 1)
    /// Blocks and signalled sources come next.
    public static let beforeSources = Activity(rawValue: 1 << 2)
    /// The loop is about to wait.
    public static let beforeWaiting = Activity(rawValue: 1 << 5)
    /// The wait is over; what ended it has not been served yet.
    public static let afterWaiting = Activity(rawValue: 1 << 6)
    /// A run ends, after its last pass.
    public static let exit = Activity(rawValue: 1 << 7)
    /// Every stage, including those of the future.
    public static let all = Activity(rawValue: 0x0FFF_FFFF)
  }
}

extension RunLoop.Activity {
  /// The six stages in the order of a pass.
  static let stages: [RunLoop.Activity] = [.entry, .beforeTimers, .beforeSources, .beforeWaiting, .afterWaiting, .exit]

  /// The place of a single stage in ``stages``.
  @inline(__always)
  var stageIndex: Int {
    let bit = rawValue.trailingZeroBitCount
    return bit < 3 ? bit : bit - 2
  }
}
