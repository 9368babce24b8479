// SPDX-License-Identifier: Apache-2.0

/// A program for one run loop, as a value: what there is, and what the loop's thread does with it.
///
/// The same program runs on Core Foundation's loop, on ours, and on a model; each gives a ``Log``. What all of them do
/// alike:
///
/// - **Time** is virtual and counted in ticks, each of one second, from the program's begin. It passes in
///   ``Action/work(_:)``, and while the loop sleeps.
/// - **Items** are made at tick 0, sources first, then observers, then timers, each kind in the order of the program.
/// - **A call-out** writes its entry into the log, and then does the actions of its body's next call. Calls are counted
///   for each item, and for each block by its number, whether nested or not.
/// - **A sleeping loop** is woken by its timers or by interruptions, whichever come first; at the same tick,
///   interruptions. The time moves to the first interruption's tick, unless it has passed while the loop was awake;
///   then all interruptions that are due are done, one after the other, and the loop goes on.
/// - **A loop that would sleep for ever**, because neither a timer nor an interruption is to come, is logged as
///   ``Log/Event/asleepForEver``, and then stopped as ``Action/stop`` does.
/// - **A run** is not begun by another thread, nor within ``deepestRun`` runs; nothing is logged then.
/// - **A full log**, with ``Log/limit`` entries, ends the program: from then on no action is done, every call-out only
///   stops the loop, and nothing is logged.
package struct Program: Hashable, Sendable {
  package var sources: [SourcePlan]
  package var observers: [ObserverPlan]
  package var timers: [TimerPlan]
  /// What blocks do.
  ///
  /// A block is performed as often as an action says so.
  package var blocks: [Body]
  /// What the loop's thread does, from the outermost level.
  package var main: [Action]
  /// What another thread does while the loop sleeps over a tick, in the order of the ticks.
  ///
  /// Those of one tick come in the order in which they stand here.
  package var whileAsleep: [Interruption]

  /// How many runs may be active at once.
  package static let deepestRun = 8

  package init(
    sources: [SourcePlan] = [], observers: [ObserverPlan] = [], timers: [TimerPlan] = [], blocks: [Body] = [],
    main: [Action] = [], whileAsleep: [Interruption] = []
  ) {
    self.sources = sources
    self.observers = observers
    self.timers = timers
    self.blocks = blocks
    self.main = main
    self.whileAsleep = whileAsleep
  }
}

/// A source that is signalled by hand.
package struct SourcePlan: Hashable, Sendable {
  package var order: Int
  /// Whether the log says when the source enters and leaves a mode.
  package var tellsModes: Bool
  package var body: Body

  package init(order: Int = 0, tellsModes: Bool = false, body: Body = Body()) {
    self.order = order
    self.tellsModes = tellsModes
    self.body = body
  }
}

package struct ObserverPlan: Hashable, Sendable {
  /// Core Foundation's bits of the activities.
  package var activities: UInt
  package var repeats: Bool
  package var order: Int
  package var body: Body

  package init(activities: UInt, repeats: Bool = true, order: Int = 0, body: Body = Body()) {
    self.activities = activities
    self.repeats = repeats
    self.order = order
    self.body = body
  }
}

package struct TimerPlan: Hashable, Sendable {
  /// When it fires first; negative: before the program began.
  package var date: Int
  /// The ticks between two dates; zero: the timer fires once.
  package var interval: Int
  package var body: Body

  package init(date: Int, interval: Int = 0, body: Body = Body()) {
    self.date = date
    self.interval = interval
    self.body = body
  }
}

/// What a call-out does.
package struct Body: Hashable, Sendable {
  /// What the first call does, the second, and so on.
  package var calls: [[Action]]
  /// What every call after those does.
  package var afterwards: [Action]

  package init(_ calls: [[Action]] = [], afterwards: [Action] = []) {
    self.calls = calls
    self.afterwards = afterwards
  }

  /// The actions of the call with this number, from zero.
  package func actions(ofCall number: Int) -> [Action] {
    number < calls.count ? calls[number] : afterwards
  }
}

/// What another thread does at a tick that the loop sleeps over.
package struct Interruption: Hashable, Sendable {
  package var tick: Int
  package var actions: [Action]

  package init(at tick: Int, _ actions: [Action]) {
    self.tick = tick
    self.actions = actions
  }
}

/// A mode by its number: 0 is the default mode.
package enum ModeName: Hashable, Sendable {
  case mode(Int)
  case common
}

package enum Item: Hashable, Sendable {
  case source(Int)
  case observer(Int)
  case timer(Int)
}

package enum Action: Hashable, Sendable {
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
  /// Runs the default mode as the loop's plainest run does; what has ended it is not told.
  case runUntilStopped
  /// Lets ticks pass, as work that takes so long.
  case work(Int)
  case ask(Question)
  /// Another thread does this while this one waits for it.
  case elsewhere([Action])
}

/// How long a run may last.
package enum Limit: Hashable, Sendable {
  /// One pass that does not wait.
  case poll
  case forever
  /// A negative number of seconds.
  case overdue
  /// A number of seconds that is none.
  case notANumber
}

/// What a program asks, and its log answers.
package enum Question: Hashable, Sendable {
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
