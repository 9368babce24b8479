// SPDX-License-Identifier: Apache-2.0

/// An operation of another thread on a loop at one point of a pass.
///
/// The loop's thread reaches the point in a call-out, where it waits for the other thread, or it sleeps.
package struct TwoThreads: Hashable, Sendable {
  package var point: Point
  package var operation: Operation
  package var setting: Setting

  package init(_ point: Point, _ operation: Operation, _ setting: Setting) {
    self.point = point
    self.operation = operation
    self.setting = setting
  }

  /// All combinations of operations, points and settings.
  package static var all: [TwoThreads] {
    var all: [TwoThreads] = []
    for point in Point.allCases {
      for operation in Operation.allCases {
        for setting in Setting.allCases { all.append(TwoThreads(point, operation, setting)) }
      }
    }
    return all
  }

  package enum Point: CaseIterable, Hashable, Sendable {
    case beforeRun, entry, beforeTimers, beforeSources, block, source, blockOfSource
    case beforeWaiting, asleep, afterWaiting, timer, blockOfTimer, exit, afterRun
  }

  package enum Setting: CaseIterable, Hashable, Sendable {
    case runForever, runForSource, poll
    /// The point is in a run of another mode, nested in a call-out of the affected run.
    case nested
    /// The point is in a run of the same mode, nested in a call-out.
    case nestedInSameMode
  }

  /// The program: a mode with an item of each kind, a timer that finally stops it, and an observer of all activities.
  package var program: Program {
    var program = Program()
    program.sources = [
      SourcePlan(), SourcePlan(body: Body(point == .source ? [there] : [[.perform(1, [inner])]])), SourcePlan(),
    ]
    program.observers = [
      ObserverPlan(activities: 231), ObserverPlan(activities: activity, body: Body([there])),
      ObserverPlan(activities: 231), ObserverPlan(activities: 231, order: -1),
    ]
    program.timers = [
      TimerPlan(date: 6, interval: 4, body: Body(afterwards: [.stop])),
      TimerPlan(date: 2, body: Body(point == .timer ? [there] : [[.perform(2, [inner])]])),
      TimerPlan(date: 4, interval: 3), TimerPlan(date: 3),
    ]
    program.blocks = [
      Body(point == .block ? [there] : []), Body(point == .blockOfSource ? [there] : []),
      Body(point == .blockOfTimer ? [there] : []), Body(),
      // A nested run does not see the blocks after the one that it is nested in.
      Body([[.perform(0, [inner]), .run(inner, .forever, returnAfterSource: false)]]),
    ]
    program.main = main
    if point == .asleep { program.whileAsleep = [Interruption(at: 1, operation.actions)] }
    return program
  }

  private var there: [Action] { [.elsewhere(operation.actions)] }

  /// The mode of the run that reaches the point.
  private var inner: ModeName { setting == .nested ? .mode(1) : .mode(0) }

  private var activity: UInt {
    switch point {
    case .entry: 1
    case .beforeTimers: 2
    case .beforeSources: 4
    case .beforeWaiting: 32
    case .afterWaiting: 64
    case .exit: 128
    default: 0
    }
  }

  private var main: [Action] {
    var actions: [Action] = [
      .add(.source(0), .mode(0)), .add(.source(1), inner), .add(.observer(0), .mode(0)), .add(.observer(1), inner),
      .add(.observer(2), .mode(0)), .add(.timer(0), .mode(0)), .add(.timer(1), inner), .add(.timer(2), .mode(0)),
    ]
    if inner != .mode(0) { actions += [.add(.observer(0), inner), .add(.timer(0), inner)] }
    let isNested = setting == .nested || setting == .nestedInSameMode
    actions.append(isNested ? .perform(4, [.mode(0)]) : .perform(0, [inner]))
    // A signalled source makes the pass poll, so it is signalled only for points without a wait.
    if point == .source || point == .blockOfSource { actions.append(.signal(1)) }
    if point == .beforeRun { actions += there }
    actions.append(
      .run(.mode(0), setting == .poll ? .poll : .forever, returnAfterSource: setting == .runForSource))
    if point == .afterRun { actions += there }
    actions += [.run(.mode(0), .forever, returnAfterSource: false), .ask(.modes)]
    return actions
  }
}
