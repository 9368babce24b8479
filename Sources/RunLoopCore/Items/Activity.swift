// SPDX-License-Identifier: Apache-2.0

extension RunLoop {
  /// The points in a run at which an observer can be called.
  ///
  /// The raw values are Core Foundation's `CFRunLoopActivity`.
  public struct Activity: OptionSet, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt

    /// Creates a value from its raw value.
    public init(rawValue: UInt) {
      self.rawValue = rawValue
    }

    /// A run begins, before its first pass.
    public static let entry = Activity(rawValue: 1 << 0)
    /// A pass begins.
    ///
    /// Due timers do not fire at this point; they fire after the wait.
    public static let beforeTimers = Activity(rawValue: 1 << 1)
    /// The loop is about to run blocks and signalled sources.
    public static let beforeSources = Activity(rawValue: 1 << 2)
    /// The loop is about to wait.
    public static let beforeWaiting = Activity(rawValue: 1 << 5)
    /// The wait has ended, and the event that ended it has not been served yet.
    public static let afterWaiting = Activity(rawValue: 1 << 6)
    /// A run ends, after its last pass.
    public static let exit = Activity(rawValue: 1 << 7)
    /// All activities, including any added in the future.
    public static let all = Activity(rawValue: 0x0FFF_FFFF)
  }
}

extension RunLoop.Activity {
  /// The six activities in the order of a pass.
  static let stages: [RunLoop.Activity] = [.entry, .beforeTimers, .beforeSources, .beforeWaiting, .afterWaiting, .exit]

  /// The index of a single activity in ``stages``.
  @inline(__always)
  var stageIndex: Int {
    let bit = rawValue.trailingZeroBitCount
    return bit < 3 ? bit : bit - 2
  }
}
