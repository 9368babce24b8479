// SPDX-License-Identifier: Apache-2.0

extension Program {
  /// The errors that prevent the program from running, such as numbers without an item and times that decrease.
  package var faults: [String] {
    var faults: [String] = []
    for interruption in whileAsleep where interruption.tick < 0 {
      faults.append("an interruption comes at tick \(interruption.tick)")
    }
    forEachAction { action in faults += self.faults(of: action) }
    return faults
  }

  private func faults(of action: Action) -> [String] {
    switch action {
    case .add(let item, let mode), .remove(let item, let mode), .ask(.contains(let item, let mode)):
      fault(in: item) + fault(in: mode)
    case .invalidate(let item), .ask(.isValid(let item)): fault(in: item)
    case .signal(let source), .ask(.isSignalled(let source)): fault(in: .source(source))
    case .perform(let block, let modes):
      (blocks.indices.contains(block) ? [] : ["there is no block \(block)"]) + modes.flatMap(fault)
    case .setDate(let timer, _), .ask(.date(let timer)): fault(in: .timer(timer))
    case .addCommonMode(let mode), .stopMode(let mode): fault(in: .mode(mode))
    case .run(let mode, _, _), .ask(.nextDate(let mode)): fault(in: mode)
    case .work(let ticks): ticks < 0 ? ["work takes \(ticks) ticks"] : []
    case .stop, .wakeUp, .ask(.modes), .elsewhere, .runUntilStopped: []
    }
  }

  private func fault(in item: Item) -> [String] {
    let exists =
      switch item {
      case .source(let index): sources.indices.contains(index)
      case .observer(let index): observers.indices.contains(index)
      case .timer(let index): timers.indices.contains(index)
      }
    return exists ? [] : ["there is no \(item)"]
  }

  private func fault(in mode: ModeName) -> [String] {
    if case .mode(let number) = mode, number < 0 { return ["there is no mode \(number)"] }
    return []
  }
}

extension Program {
  /// Calls `body` with every action, including those of another thread.
  func forEachAction(_ body: (Action) -> Void) {
    func visit(_ actions: [Action]) {
      for action in actions {
        body(action)
        if case .elsewhere(let actions) = action { visit(actions) }
      }
    }
    for plan in allBodies {
      plan.calls.forEach(visit)
      visit(plan.afterwards)
    }
    visit(main)
    for interruption in whileAsleep { visit(interruption.actions) }
  }

  private var allBodies: [Body] {
    sources.map(\.body) + observers.map(\.body) + timers.map(\.body) + blocks
  }

  /// Replaces every list of actions by the result of `change`, the inner lists first.
  mutating func mapActions(_ change: ([Action]) -> [Action]) {
    func changed(_ actions: [Action]) -> [Action] {
      var inner: [Action] = []
      for action in actions {
        if case .elsewhere(let actions) = action {
          inner.append(.elsewhere(changed(actions)))
        } else {
          inner.append(action)
        }
      }
      return change(inner)
    }
    func changed(_ body: Body) -> Body { Body(body.calls.map(changed), afterwards: changed(body.afterwards)) }
    for index in sources.indices { sources[index].body = changed(sources[index].body) }
    for index in observers.indices { observers[index].body = changed(observers[index].body) }
    for index in timers.indices { timers[index].body = changed(timers[index].body) }
    for index in blocks.indices { blocks[index] = changed(blocks[index]) }
    main = changed(main)
    for index in whileAsleep.indices { whileAsleep[index].actions = changed(whileAsleep[index].actions) }
  }
}
