// SPDX-License-Identifier: Apache-2.0

// Shorthand for the catalog's programs.

extension ModeName {
  static let main = ModeName.mode(0)
  static let other = ModeName.mode(1)
}

extension Item {
  static let s0 = Item.source(0)
  static let s1 = Item.source(1)
  static let o0 = Item.observer(0)
  static let o1 = Item.observer(1)
  static let t0 = Item.timer(0)
  static let t1 = Item.timer(1)
}

extension Action {
  /// Runs a mode without a time limit.
  static func runs(_ mode: ModeName = .main) -> Action { .run(mode, .forever, returnAfterSource: false) }
  /// Runs a mode for one pass.
  static func polls(_ mode: ModeName = .main) -> Action { .run(mode, .poll, returnAfterSource: false) }
  static let runsForSource = Action.run(.main, .forever, returnAfterSource: true)
  static func posts(_ block: Int, _ mode: ModeName = .main) -> Action { .perform(block, [mode]) }
  static func asks(_ question: Question) -> Action { .ask(question) }
}

extension [Action] {
  /// Adds items to the default mode.
  static func adds(_ items: Item...) -> [Action] { items.map { .add($0, .main) } }
}

extension ObserverPlan {
  /// An observer of every activity without actions.
  static let ofAll = ObserverPlan(activities: Stages.all)
  /// An observer of the beginning and end of runs.
  static let ofRuns = ObserverPlan(activities: Stages.entry | Stages.exit)
  /// An observer of the wait.
  static let ofWait = ObserverPlan(activities: Stages.beforeWaiting | Stages.afterWaiting)
}

extension SourcePlan {
  static let idle = SourcePlan()
  static func does(_ actions: Action...) -> SourcePlan { SourcePlan(body: Body([actions])) }
}

extension TimerPlan {
  /// Returns a timer that fires once with actions.
  static func at(_ date: Int, _ actions: Action...) -> TimerPlan { TimerPlan(date: date, body: Body([actions])) }
}
