/// A program for one run loop, as a value: what there is, and what the loop's thread does with it.
///
/// The same program runs on Core Foundation's loop, on ours, and on a model; each gives a ``Log``. Time is virtual and
/// counted in ticks, each of one second, from the program's begin.
public struct Program: Hashable, Sendable {
  public var sources: [SourcePlan] = []
  public var observers: [ObserverPlan] = []
  public var timers: [TimerPlan] = []
  /// What blocks do. A block is performed as often as an action says so.
  public var blocks: [Body] = []
  /// What the loop's thread does, from the outermost level.
  public var main: [Action] = []
  /// What another thread does while the loop sleeps over a tick, in the order of the ticks.
  public var whileAsleep: [Interruption] = []

  public init() {}
}

/// A source that is signalled by hand.
public struct SourcePlan: Hashable, Sendable {
  public var order: Int
  public var body: Body

  public init(order: Int = 0, body: Body = Body()) {
    self.order = order
    self.body = body
  }
}

public struct ObserverPlan: Hashable, Sendable {
  /// Core Foundation's bits of the activities.
  public var activities: UInt
  public var repeats: Bool
  public var order: Int
  public var body: Body

  public init(activities: UInt, repeats: Bool = true, order: Int = 0, body: Body = Body()) {
    self.activities = activities
    self.repeats = repeats
    self.order = order
    self.body = body
  }
}

public struct TimerPlan: Hashable, Sendable {
  /// When it fires first; negative: before the program began.
  public var date: Int
  /// The ticks between two dates; zero: the timer fires once.
  public var interval: Int
  public var body: Body

  public init(date: Int, interval: Int = 0, body: Body = Body()) {
    self.date = date
    self.interval = interval
    self.body = body
  }
}

/// What a call-out does.
public struct Body: Hashable, Sendable {
  /// What the first call does, the second, and so on.
  public var calls: [[Action]]
  /// What every call after those does.
  public var afterwards: [Action]

  public init(_ calls: [[Action]] = [], afterwards: [Action] = []) {
    self.calls = calls
    self.afterwards = afterwards
  }

  /// The actions of the call with this number, from zero.
  public func actions(ofCall number: Int) -> [Action] {
    number < calls.count ? calls[number] : afterwards
  }
}

/// What another thread does at a tick that the loop sleeps over.
public struct Interruption: Hashable, Sendable {
  public var tick: Int
  public var actions: [Action]

  public init(at tick: Int, _ actions: [Action]) {
    self.tick = tick
    self.actions = actions
  }
}

/// A mode by its number: 0 is the default mode.
public enum ModeName: Hashable, Sendable {
  case mode(Int)
  case common
}

public enum Item: Hashable, Sendable {
  case source(Int)
  case observer(Int)
  case timer(Int)
}

public enum Action: Hashable, Sendable {
  case add(Item, ModeName)
  case remove(Item, ModeName)
  case invalidate(Item)
  case signal(Int)
  case perform(Int, [ModeName])
  case addCommonMode(Int)
  /// Gives a timer a date, in ticks from the program's begin.
  case setDate(Int, Int)
  case stop
  /// The stop that waits for a run of its mode.
  case stopMode(Int)
  case wakeUp
  case run(ModeName, Limit, returnAfterSource: Bool)
  /// Lets ticks pass, as work that takes so long.
  case work(Int)
  case ask(Question)
  /// Another thread does this while this one waits for it.
  case elsewhere([Action])
}

/// How long a run may last.
public enum Limit: Hashable, Sendable {
  /// One pass that does not wait.
  case poll
  case forever
}

/// What a program asks, and its log answers.
public enum Question: Hashable, Sendable {
  case contains(Item, ModeName)
  case isValid(Item)
  case isSignalled(Int)
  /// The date of a timer.
  case date(Int)
  /// The next date of a mode.
  case nextDate(ModeName)
  /// The modes that the loop has.
  case modes
}
