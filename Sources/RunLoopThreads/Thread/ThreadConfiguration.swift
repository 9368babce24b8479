// SPDX-License-Identifier: Apache-2.0

extension Thread {
  /// The settings with which a thread runs.
  public struct Configuration: Sendable, Hashable {
    /// The size of the stack in bytes; the default is zero, which means the system's default size.
    public var stackSize: Int
    /// The niceness, from −20 (most favored) to 19.
    ///
    /// The default is `nil`, which leaves it unchanged.
    ///
    /// A niceness below that of the creating thread requires a privilege.
    public var niceness: Int?
    /// The numbers of the processors that the thread may run on; the default is `nil`, which leaves them unchanged.
    public var processors: Set<Int>?
    /// How late the system may end a sleep of the thread.
    ///
    /// The default is `nil`, which leaves it unchanged.
    ///
    /// By default, Linux ends sleeps up to 50 microseconds late. The value is set when the thread begins, and threads
    /// and processes that it creates inherit it; `RunLoop.timerSlack` changes it later. It is clamped to between a
    /// nanosecond and a minute.
    public var timerSlack: Duration?

    /// Creates a configuration.
    public init(stackSize: Int = 0, niceness: Int? = nil, processors: Set<Int>? = nil) {
      self.stackSize = stackSize
      self.niceness = niceness
      self.processors = processors
    }
  }

  /// A setting that the system has rejected, and the error number that it returned.
  public enum Rejection: Hashable, Sendable {
    /// The name was rejected.
    case name(String, Int32)
    /// The niceness was rejected, for example with `EPERM` if it requires a privilege.
    case niceness(Int, Int32)
    /// The processors were rejected, for example with `EINVAL` if none of them exists.
    case processors(Set<Int>, Int32)
  }
}

extension Thread.Rejection: CustomStringConvertible {
  /// A human-readable description.
  public var description: String {
    switch self {
    case .name(let name, let number): "the name \"\(name)\": \(errorText(number))"
    case .niceness(let niceness, let number): "the niceness \(niceness): \(errorText(number))"
    case .processors(let processors, let number): "the processors \(processors.sorted()): \(errorText(number))"
    }
  }
}
