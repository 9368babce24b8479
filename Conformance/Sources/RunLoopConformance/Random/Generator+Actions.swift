// SPDX-License-Identifier: Apache-2.0

extension Generator {
  /// The code that performs an action.
  enum Actor {
    case main
    case callOut
    /// Another thread, which begins no run.
    case elsewhere
  }

  enum ActionKind: CaseIterable {
    case add, remove, invalidate, addCommonMode
    case signal, perform, setDate, stop, stopMode, wakeUp
    case run, work, ask, elsewhere
  }

  mutating func actions(_ count: ClosedRange<Int>, in actor: Actor) -> [Action] {
    var actions: [Action] = []
    for _ in 0..<random.number(in: count) { actions.append(action(in: actor)) }
    return actions
  }

  mutating func action(in actor: Actor) -> Action {
    switch random.element(weighing: weights(in: actor)) {
    case .add: .add(item(), mode(common: 20))
    case .remove: .remove(item(), mode(common: 20))
    case .invalidate: .invalidate(item())
    case .signal: .signal(random.number(below: shape.sources))
    case .perform: .perform(random.number(below: shape.blocks), blockModes())
    case .addCommonMode:
      .addCommonMode(shape.becomesCommon && random.chance(60) ? shape.home : random.number(below: shape.modes))
    case .setDate: .setDate(random.number(below: shape.timers), date())
    case .stop: .stop
    case .stopMode: .stopMode(random.number(below: shape.modes))
    case .wakeUp: .wakeUp
    case .run: run()
    case .work: .work(random.number(in: 1...3))
    case .ask: .ask(question())
    case .elsewhere: .elsewhere(actions(1...2, in: .elsewhere))
    }
  }

  private func weights(in actor: Actor) -> [(weight: Int, element: ActionKind)] {
    var weights: [(weight: Int, element: ActionKind)] = [
      (6, .stop), (2, .stopMode), (6, .wakeUp), (4, .addCommonMode), (8, .ask),
    ]
    if hasItem { weights += [(10, .add), (7, .remove), (3, .invalidate)] }
    if shape.sources > 0 { weights.append((16, .signal)) }
    if shape.blocks > 0 { weights.append((14, .perform)) }
    if shape.timers > 0 { weights.append((7, .setDate)) }
    switch actor {
    case .main: weights += [(2, .work), (3, .elsewhere)]
    case .callOut: weights += [(7, .work), (8, .run), (6, .elsewhere)]
    case .elsewhere: weights += [(2, .work)]
    }
    for index in weights.indices { weights[index].weight *= shape.emphasis[weights[index].element] ?? 1 }
    // At least one action is possible, whatever the weights.
    return weights + [(1, .wakeUp)]
  }

  mutating func run() -> Action {
    guard !random.chance(5) else { return .runUntilStopped }
    let limit = random.element(weighing: [(65, Limit.forever), (28, .poll), (4, .notANumber), (3, .overdue)])
    return .run(mode(common: 2), limit, returnAfterSource: random.chance(30))
  }

  mutating func question() -> Question {
    switch random.number(below: 6) {
    case 0 where shape.sources > 0: .isSignalled(random.number(below: shape.sources))
    case 1 where shape.timers > 0: .date(random.number(below: shape.timers))
    case 2: .nextDate(mode(common: 10))
    case 3: .modes
    case 4 where hasItem: .isValid(item())
    default: hasItem ? .contains(item(), mode(common: 20)) : .modes
    }
  }

  mutating func date() -> Int { random.number(in: -2...shape.lastDate) }

  /// Returns a mode, or with a probability in percent the common pseudo-mode.
  mutating func mode(common percent: Int) -> ModeName {
    random.chance(percent) ? .common : .mode(random.element(of: [shape.home, shape.home] + Array(0..<shape.modes)))
  }

  mutating func blockModes() -> [ModeName] {
    var modes: [ModeName] = []
    for _ in 0..<random.element(weighing: [(1, 0), (16, 1), (5, 2), (1, 3)]) {
      modes.append(mode(common: shape.becomesCommon ? 50 : 25))
    }
    return modes
  }

  var hasItem: Bool { shape.sources + shape.observers + shape.timers > 0 }

  /// Returns all items except the stopper.
  func items() -> [Item] {
    (0..<shape.sources).map(Item.source) + (0..<shape.observers).map(Item.observer) + (0..<shape.timers).map(Item.timer)
  }

  /// Returns a random item; there must be at least one.
  mutating func item() -> Item { random.element(of: items()) }
}
