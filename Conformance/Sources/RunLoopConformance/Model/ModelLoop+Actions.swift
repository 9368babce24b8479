// SPDX-License-Identifier: Apache-2.0

// The actions of call-outs, and their log entries.

extension ModelLoop {
  /// Logs a call-out, and performs its body's actions for this call.
  mutating func callOut(_ event: Log.Event) {
    write(event)
    // A full log ends the program.
    guard !log.isFull else { return stop() }
    switch event {
    case .observer(let observer, _):
      observers[observer].calls += 1
      perform(program.observers[observer].body.actions(ofCall: observers[observer].calls - 1))
    case .source(let source):
      sources[source].calls += 1
      perform(program.sources[source].body.actions(ofCall: sources[source].calls - 1))
    case .timer(let timer):
      timers[timer].calls += 1
      perform(program.timers[timer].body.actions(ofCall: timers[timer].calls - 1))
    case .block(let block):
      blockCalls[block] += 1
      perform(program.blocks[block].actions(ofCall: blockCalls[block] - 1))
    case .entered, .left, .ranWith, .ranUntilStopped, .answer, .asleepForEver, .hung:
      preconditionFailure("\(event) is no call-out")
    }
  }

  mutating func perform(_ actions: [Action]) {
    for action in actions where !log.isFull { perform(action) }
  }

  /// Performs actions of another thread while this one waits for it.
  mutating func performElsewhere(_ actions: [Action]) {
    let wasElsewhere = isElsewhere
    isElsewhere = true
    perform(actions)
    isElsewhere = wasElsewhere
  }

  private mutating func perform(_ action: Action) {
    switch action {
    case .add(let item, let mode): add(item, mode)
    case .remove(let item, let mode): remove(item, mode)
    case .invalidate(let item): invalidate(item)
    case .signal(let source): signal(source)
    case .perform(let block, let modes): post(block, modes)
    case .addCommonMode(let mode): addCommonMode(mode)
    case .setDate(let timer, let date): setDate(timer, date)
    case .stop: stop()
    case .stopMode(let mode): stopMode(mode)
    case .wakeUp: wakeUp()
    case .run(let mode, let limit, let returnsAfterSource):
      guard !isElsewhere, runs.count < Program.deepestRun else { return }
      write(.ranWith(run(mode, limit, returnsAfterSource: returnsAfterSource)))
    case .runUntilStopped:
      guard !isElsewhere, runs.count < Program.deepestRun else { return }
      // R15.
      _ = run(.mode(0), .forever, returnsAfterSource: false)
      write(.ranUntilStopped)
    case .work(let ticks): work(ticks)
    case .ask(let question): write(.answer(question, answer(question)))
    case .elsewhere(let actions): performElsewhere(actions)
    }
  }

  private func answer(_ question: Question) -> Answer {
    switch question {
    case .contains(let item, let mode): .bool(contains(item, mode))
    case .isValid(let item): .bool(isValid(item))
    case .isSignalled(let source): .bool(sources[source].signal != nil)
    case .date(let timer): .tick(date(timer))
    case .nextDate(let mode): .tick(nextDate(mode))
    case .modes: .modes(Set(modes.made.map { .mode($0) } + (hasLiteralCommonMode ? [.common] : [])))
    }
  }

  mutating func write(_ event: Log.Event) {
    guard !log.isFull else { return }
    let mode = runs.last.map { ModeName.mode($0.mode) }
    log.entries.append(.init(event, .init(tick: now, depth: runs.count, mode: mode, isWaiting: isWaiting)))
  }
}
