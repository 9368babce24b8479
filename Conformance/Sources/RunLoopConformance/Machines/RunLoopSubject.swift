// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

/// Our loop of the calling thread, on virtual time.
final class RunLoopSubject: Subject, @unchecked Sendable {
  // Sendable: items are created before another thread uses them; the loop's locks guard its own state.

  private let time: SteppedTime
  private let loop: RunLoop
  private var sources: [RunLoop.Source] = []
  private var observers: [RunLoop.Observer] = []
  private var timers: [Timer] = []

  init(_ time: SteppedTime, _ loop: RunLoop) {
    self.time = time
    self.loop = loop
  }

  var tick: Int { Int(time.now.nanoseconds / VirtualClock.nanosecondsOfTick) }
  func work(_ ticks: Int) { time.advance(by: .seconds(ticks)) }
  func adoptCallingThread() { _ = time.makeLoop() }
}

// Creating items.
extension RunLoopSubject {
  private typealias ModeHandler = @Sendable (RunLoop, RunLoop.Mode) -> Void

  private func makeSource(_ index: Int, _ plan: SourcePlan, _ interpreter: Interpreter) -> RunLoop.Source {
    let entered: ModeHandler = { [unowned interpreter] _, mode in interpreter.tell(.entered(index, Self.mode(mode))) }
    let left: ModeHandler = { [unowned interpreter] _, mode in interpreter.tell(.left(index, Self.mode(mode))) }
    return RunLoop.Source(
      order: plan.order, schedule: plan.tellsModes ? entered : nil, cancel: plan.tellsModes ? left : nil
    ) { [unowned interpreter] in
      interpreter.callOut(.source(index))
    }
  }

  func makeItems(of program: Program, for interpreter: Interpreter) {
    for (index, plan) in program.sources.enumerated() {
      sources.append(makeSource(index, plan, interpreter))
    }
    for (index, plan) in program.observers.enumerated() {
      let observer = RunLoop.Observer(
        activities: RunLoop.Activity(rawValue: plan.activities), repeats: plan.repeats, order: plan.order
      ) { [unowned interpreter] _, activity in
        interpreter.callOut(.observer(index, activity.rawValue))
      }
      observers.append(observer)
    }
    for (index, plan) in program.timers.enumerated() {
      let timer = Timer(
        deadline: Self.instant(plan.date), interval: .seconds(plan.interval)
      ) { [unowned interpreter] _ in
        interpreter.callOut(.timer(index))
      }
      timers.append(timer)
    }
  }
}

extension RunLoopSubject {
  func add(_ item: Item, to mode: ModeName) {
    switch item {
    case .source(let index): loop.add(sources[index], forMode: Self.spell(mode))
    case .observer(let index): loop.add(observers[index], forMode: Self.spell(mode))
    case .timer(let index): loop.add(timers[index], forMode: Self.spell(mode))
    }
  }

  func remove(_ item: Item, from mode: ModeName) {
    switch item {
    case .source(let index): loop.remove(sources[index], forMode: Self.spell(mode))
    case .observer(let index): loop.remove(observers[index], forMode: Self.spell(mode))
    case .timer(let index): loop.remove(timers[index], forMode: Self.spell(mode))
    }
  }

  func invalidate(_ item: Item) {
    switch item {
    case .source(let index): sources[index].invalidate()
    case .observer(let index): observers[index].invalidate()
    case .timer(let index): timers[index].invalidate()
    }
  }

  func signal(source: Int) { sources[source].signal() }

  func perform(block: Int, in modes: [ModeName], for interpreter: Interpreter) {
    loop.perform(inModes: modes.map(Self.spell)) { [unowned interpreter] in interpreter.callOut(.block(block)) }
  }

  func addCommonMode(_ mode: Int) {
    // Cannot fail: numbered modes are valid, and no descriptors are watched.
    try? loop.addCommonMode(Self.spell(.mode(mode)))
  }

  func setDate(ofTimer timer: Int, to tick: Int) { timers[timer].deadline = Self.instant(tick) }
  func stop() { loop.stop() }
  func stop(mode: Int) { loop.stop(mode: Self.spell(.mode(mode))) }
  func wakeUp() { loop.wakeUp() }

  func run(in mode: ModeName, _ limit: Limit, returnAfterSource: Bool) -> RunOutcome {
    let seconds: Double =
      switch limit {
      case .poll: 0
      case .forever: .infinity
      case .overdue: -5
      case .notANumber: .nan
      }
    let result = loop.run(mode: Self.spell(mode), for: seconds, returnAfterSourceHandled: returnAfterSource)
    return switch result {
    case .finished: .finished
    case .stopped: .stopped
    case .timedOut: .timedOut
    case .handledSource: .handledSource
    }
  }

  func runUntilStopped() { loop.runUntilStopped() }
}

extension RunLoopSubject {
  func contains(_ item: Item, in mode: ModeName) -> Bool {
    switch item {
    case .source(let index): loop.contains(sources[index], forMode: Self.spell(mode))
    case .observer(let index): loop.contains(observers[index], forMode: Self.spell(mode))
    case .timer(let index): loop.contains(timers[index], forMode: Self.spell(mode))
    }
  }

  func isValid(_ item: Item) -> Bool {
    switch item {
    case .source(let index): sources[index].isValid
    case .observer(let index): observers[index].isValid
    case .timer(let index): timers[index].isValid
    }
  }

  func isSignalled(source: Int) -> Bool { sources[source].isSignalled }
  func date(ofTimer timer: Int) -> Int? { Self.tick(of: timers[timer].deadline) }
  func nextDate(in mode: ModeName) -> Int? { loop.nextDeadline(forMode: Self.spell(mode)).map(Self.tick) }

  var modes: Set<ModeName> {
    var modes: Set<ModeName> = []
    for mode in loop.modes { modes.insert(Self.mode(mode)) }
    return modes
  }

  var currentMode: ModeName? { loop.currentMode.map(Self.mode) }
  var isWaiting: Bool { loop.isWaiting }
}

// Names and dates.
extension RunLoopSubject {
  private static func spell(_ mode: ModeName) -> RunLoop.Mode {
    switch mode {
    case .common: .common
    case .mode(0): .default
    case .mode(let number): RunLoop.Mode(ModeName.spell(number))
    }
  }

  private static func mode(_ mode: RunLoop.Mode) -> ModeName {
    switch mode {
    case .default: return .mode(0)
    case .common: return .common
    default:
      guard let number = ModeName.number(in: mode.rawValue) else {
        preconditionFailure("a mode of an unknown name, \(mode)")
      }
      return .mode(number)
    }
  }

  /// Returns the instant of a tick; the virtual clock starts with the loop's.
  private static func instant(_ tick: Int) -> SuspendingClock.Instant {
    SuspendingClock().systemEpoch.advanced(by: .seconds(tick))
  }

  private static func tick(of instant: SuspendingClock.Instant) -> Int {
    Int(SuspendingClock().systemEpoch.duration(to: instant).components.seconds)
  }
}
