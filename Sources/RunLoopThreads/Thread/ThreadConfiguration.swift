// SPDX-License-Identifier: Apache-2.0

extension Thread {
  /// How a thread is to run.
  public struct Configuration: Sendable, Hashable {
    /// The bytes of the stack; zero is the system's usual size.
    public var stackSize: Int
    /// The niceness, from −20 (the most favoured) to 19; nil leaves it as it is.
    ///
    /// Less than the maker's own needs a privilege.
    public var niceness: Int?
    /// The numbers of the processors that the thread may run on; nil leaves it as it is.
    public var processors: Set<Int>?
    /// By how much the system may be late when it ends a sleep of the thread; nil leaves it as it is.
    ///
    /// Linux lets the sleeps of a thread end up to 50 microseconds late. This is set when the thread begins, and holds
    /// for threads and processes that it makes; `RunLoop.timerSlack` changes it later. Less than a nanosecond counts as
    /// one.
    public var timerSlack: Duration?

    /// Makes settings.
    public init(stackSize: Int = 0, niceness: Int? = nil, processors: Set<Int>? = nil) {
      self.stackSize = stackSize
      self.niceness = niceness
      self.processors = processors
    }
  }

  /// A setting that the system has rejected, and the error number that it returned.
  public enum Refusal: Hashable, Sendable {
    /// The name.
    case name(String, Int32)
    /// The niceness, as with `EPERM` for one that needs a privilege.
    case niceness(Int, Int32)
    /// The processors, as with `EINVAL` if there is none of them.
    case processors(Set<Int>, Int32)
  }
}

extension Thread.Refusal: CustomStringConvertible {
  /// The text for a person.
  public var description: String {
    switch self {
    case .name(let name, let number): "the name \"\(name)\": \(errorText(number))"
    case .niceness(let niceness, let number): "the niceness \(niceness): \(errorText(number))"
    case .processors(let processors, let number): "the processors \(processors.sorted()): \(errorText(number))"
    }
  }
}
