/// What a program's call-outs, runs and questions gave, in order.
public struct Log: Hashable, Sendable {
  public var entries: [Entry] = []

  public init(_ entries: [Entry] = []) { self.entries = entries }

  /// How many entries a log holds; a program that fills its log has ended.
  public static let limit = 400

  public var isFull: Bool { entries.count >= Self.limit }

  public struct Entry: Hashable, Sendable {
    public var event: Event
    /// The state when it happened.
    public var state: State

    public init(_ event: Event, _ state: State) {
      self.event = event
      self.state = state
    }
  }

  public enum Event: Hashable, Sendable {
    /// An observer was called for one activity, by Core Foundation's bit.
    case observer(Int, UInt)
    case source(Int)
    case timer(Int)
    case block(Int)
    case ranWith(RunOutcome)
    case answer(Question, Answer)
    /// The loop is about to sleep, and nothing is to wake it; it is stopped then.
    ///
    /// The tick is the one at which it went to sleep.
    case asleepForEver
    /// The program did not come to its end; no model says so.
    case hung
  }

  /// What could be seen of the loop, from within a call-out or between runs.
  public struct State: Hashable, Sendable {
    public var tick: Int
    /// How many runs are active.
    public var depth: Int
    /// The mode that runs.
    public var mode: ModeName?
    public var isWaiting: Bool

    public init(tick: Int, depth: Int, mode: ModeName?, isWaiting: Bool) {
      self.tick = tick
      self.depth = depth
      self.mode = mode
      self.isWaiting = isWaiting
    }
  }
}

/// The raw values are Core Foundation's.
public enum RunOutcome: Int32, Hashable, Sendable {
  case finished = 1
  case stopped = 2
  case timedOut = 3
  case handledSource = 4
}

public enum Answer: Hashable, Sendable {
  case bool(Bool)
  /// A date in ticks; nil: none.
  case tick(Int?)
  case modes(Set<ModeName>)
}

/// Something that runs programs.
public protocol Machine: Sendable {
  func run(_ program: Program) -> Log
}
