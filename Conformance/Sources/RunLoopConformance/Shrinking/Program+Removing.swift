// SPDX-License-Identifier: Apache-2.0

extension Program {
  /// Returns the program without an item and the actions on it; later items are renumbered.
  func removing(_ item: Item) -> Program {
    var program = self
    switch item {
    case .source(let index): program.sources.remove(at: index)
    case .observer(let index): program.observers.remove(at: index)
    case .timer(let index): program.timers.remove(at: index)
    }
    program.mapActions { actions in actions.compactMap { $0.renumbered { $0.without(item) } } }
    return program
  }

  /// The program without a block.
  func removing(block: Int) -> Program {
    var program = self
    program.blocks.remove(at: block)
    program.mapActions { actions in
      actions.compactMap { action in
        guard case .perform(let number, let modes) = action else { return action }
        return number == block ? nil : .perform(number > block ? number - 1 : number, modes)
      }
    }
    return program
  }
}

extension Item {
  /// Returns this item's number after the removal of another; nil if it is this one.
  fileprivate func without(_ other: Item) -> Item? {
    switch (self, other) {
    case (.source(let index), .source(let gone)): index == gone ? nil : .source(index > gone ? index - 1 : index)
    case (.observer(let index), .observer(let gone)): index == gone ? nil : .observer(index > gone ? index - 1 : index)
    case (.timer(let index), .timer(let gone)): index == gone ? nil : .timer(index > gone ? index - 1 : index)
    default: self
    }
  }
}

extension Action {
  /// Returns the action with items renumbered by `renumber`; nil if an item was removed.
  fileprivate func renumbered(_ renumber: (Item) -> Item?) -> Action? {
    switch self {
    case .add(let item, let mode): return renumber(item).map { .add($0, mode) }
    case .remove(let item, let mode): return renumber(item).map { .remove($0, mode) }
    case .invalidate(let item): return renumber(item).map { .invalidate($0) }
    case .signal(let source): return renumber(.source(source)).map { .signal($0.index) }
    case .setDate(let timer, let tick): return renumber(.timer(timer)).map { .setDate($0.index, tick) }
    case .ask(.contains(let item, let mode)): return renumber(item).map { .ask(.contains($0, mode)) }
    case .ask(.isValid(let item)): return renumber(item).map { .ask(.isValid($0)) }
    case .ask(.isSignalled(let source)): return renumber(.source(source)).map { .ask(.isSignalled($0.index)) }
    case .ask(.date(let timer)): return renumber(.timer(timer)).map { .ask(.date($0.index)) }
    case .perform, .addCommonMode, .stop, .stopMode, .wakeUp, .run, .runUntilStopped, .work, .ask(.nextDate),
      .ask(.modes), .elsewhere:
      return self
    }
  }
}

extension Item {
  fileprivate var index: Int {
    switch self {
    case .source(let index), .observer(let index), .timer(let index): index
    }
  }
}
