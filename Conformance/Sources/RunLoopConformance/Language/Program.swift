// SPDX-License-Identifier: Apache-2.0

/// A program for one run loop, as a value: the items, and the actions of the loop's thread.
///
/// The same program runs on Core Foundation's loop, on ours, and on a model, and each returns a ``Log``. Their common
/// behavior:
///
/// - **Time** is virtual and counted in ticks of one second since the start of the program. It advances in
///   ``Action/work(_:)``, and while the loop sleeps.
/// - **Items** are created at tick 0: sources first, then observers, then timers, each kind in the program's order.
/// - **A call-out** logs its entry, and then performs the actions of its body's next call. Calls are counted for each
///   item, and for each block by its number, whether nested or not.
/// - **A sleeping loop** is woken by its timers or by interruptions, whichever are first; at the same tick,
///   interruptions. The time advances to the first interruption's tick, unless that has passed while the loop was
///   awake. Then all interruptions that are due are performed one after the other, and the loop continues.
/// - **A loop that would sleep forever**, because neither a timer nor an interruption is pending, is logged as
///   ``Log/Event/asleepForEver``, and then stopped as by ``Action/stop``.
/// - **A run** is not begun by another thread, nor within ``deepestRun`` runs. Nothing is logged then.
/// - **A full log**, with ``Log/limit`` entries, ends the program: from then on no actions are performed, every
///   call-out only stops the loop, and nothing is logged.
package struct Program: Hashable, Sendable {
  package var sources: [SourcePlan]
  package var observers: [ObserverPlan]
  package var timers: [TimerPlan]
  /// The bodies of blocks, each performed once for every action that posts the block.
  package var blocks: [Body]
  /// The actions of the loop's thread, outside any run.
  package var main: [Action]
  /// The actions of another thread while the loop sleeps over a tick, in the order of the ticks.
  ///
  /// Interruptions at the same tick keep this order.
  package var whileAsleep: [Interruption]

  /// The maximum number of nested runs.
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

/// A source that is signalled manually.
package struct SourcePlan: Hashable, Sendable {
  package var order: Int
  /// Whether the log has entries for the source's addition to and removal from modes.
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
  /// The first fire date, which is before the program's start if it is negative.
  package var date: Int
  /// The ticks between two dates, or zero if the timer fires once.
  package var interval: Int
  package var body: Body

  package init(date: Int, interval: Int = 0, body: Body = Body()) {
    self.date = date
    self.interval = interval
    self.body = body
  }
}

/// The actions of a call-out.
package struct Body: Hashable, Sendable {
  /// The actions of the first call, the second, and so on.
  package var calls: [[Action]]
  /// The actions of every later call.
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

/// Actions of another thread at a tick that the loop sleeps over.
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
  /// Sets a timer's date, in ticks from the program's start.
  case setDate(Int, Int)
  case stop
  /// Stops a mode, which takes effect in its next run.
  case stopMode(Int)
  case wakeUp
  case run(ModeName, Limit, returnAfterSource: Bool)
  /// Runs the default mode with the loop's simplest call, which has no result.
  case runUntilStopped
  /// Spends a number of ticks.
  case work(Int)
  case ask(Question)
  /// Another thread performs these actions while this one waits for it.
  case elsewhere([Action])
}

/// The time limit of a run.
package enum Limit: Hashable, Sendable {
  /// One pass that does not wait.
  case poll
  case forever
  /// A negative number of seconds.
  case overdue
  /// The number of seconds is NaN.
  case notANumber
}

/// A question whose result is logged.
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
