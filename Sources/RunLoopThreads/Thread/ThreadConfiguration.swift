// SPDX-License-Identifier: Apache-2.0

extension Thread {
  /// How a thread is to run.
  public struct Configuration: Sendable, Hashable {
    /// The bytes of the stack; zero means the system's usual size.
    public var stackSize: Int
    /// The niceness, from −20 (the most favoured) to 19; nil leaves it as it is.
    ///
    /// A niceness below that of the thread's maker needs a privilege.
    public var niceness: Int?
    /// The numbers of the processors that the thread may run on; nil leaves it as it is.
    public var processors: Set<Int>?
    /// How late the system may end a sleep of the thread; nil leaves it as it is.
    ///
    /// Linux lets the sleeps of a thread end up to 50 microseconds late. This is set when the thread begins, and holds
    /// for threads and processes that it makes; `RunLoop.timerSlack` changes it later. Less than a nanosecond counts as
    /// one, and more than a minute as a minute.
    public var timerSlack: Duration?

    /// Makes settings.
    public init(stackSize: Int = 0, niceness: Int? = nil, processors: Set<Int>? = nil) {
      self.stackSize = stackSize
      self.niceness = niceness
      self.processors = processors
    }
  }

  /// A setting that the system has rejected, and the error number that it returned.
  public enum Rejection: Hashable, Sendable {
    /// The name.
    case name(String, Int32)
    /// The niceness; for example with `EPERM` if it needs a privilege.
    case niceness(Int, Int32)
    /// The processors; for example with `EINVAL` if none of them exists.
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
