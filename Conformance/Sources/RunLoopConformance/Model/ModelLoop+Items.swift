// SPDX-License-Identifier: Apache-2.0

// Items, their modes, and the common modes.

extension ModelLoop {
  /// R22: creates a mode if it does not exist.
  mutating func makeMode(_ mode: Int) {
    guard modes[mode] == nil else { return }
    modes[mode] = ModeState()
    // A readable wake-up descriptor is ready in a set that it is added to.
    if wakeUpIsReadable { modes[mode]?.descriptors.note(.wakeUp) }
  }

  mutating func add(_ item: Item, _ name: ModeName) {
    // R74, R99c.
    guard isValid(item) else { return }
    switch name {
    case .mode(let mode): insert(item, mode)
    case .common:
      // R101.
      if !commonItems.contains(item) { commonItems.append(item) }
      for mode in commonModes.sorted() { insert(item, mode) }
    }
  }

  private mutating func insert(_ item: Item, _ mode: Int) {
    makeMode(mode)
    // R72, R99b: adding again has no effect.
    guard modes[mode]?[item] == false else { return }
    switch item {
    case .source(let source):
      modes[mode]?.sources.append(source)
      if sleep?.mode == mode, sources[source].signal != nil { sleep?.hasSignal = true }
      // R72.
      if program.sources[source].tellsModes { write(.entered(source, .mode(mode))) }
    case .observer(let observer):
      let order = program.observers[observer].order
      let observers = modes[mode]?.observers ?? []
      let index = observers.firstIndex { program.observers[$0].order > order } ?? observers.endIndex
      modes[mode]?.observers.insert(observer, at: index)
    case .timer(let timer):
      insertByTick(timer, mode)
      // M19: a sleep that would last too long ends with another look.
      if differs(.m19), sleepsTooLong(for: timer, mode) { poke() }
    }
  }

  mutating func remove(_ item: Item, _ name: ModeName) {
    switch name {
    case .mode(let mode): take(item, outOf: [mode])
    case .common:
      // R104.
      guard let index = commonItems.firstIndex(of: item) else { return }
      commonItems.remove(at: index)
      take(item, outOf: commonModes.sorted())
    }
  }

  private mutating func take(_ item: Item, outOf numbers: [Int]) {
    for mode in numbers where modes[mode]?[item] == true {
      switch item {
      case .source(let source):
        modes[mode]?.sources.removeAll { $0 == source }
        // R73.
        if program.sources[source].tellsModes { write(.left(source, .mode(mode))) }
      case .observer(let observer): modes[mode]?.observers.removeAll { $0 == observer }
      case .timer(let timer):
        modes[mode]?.timers.removeAll { $0 == timer }
        arm(mode)
      }
    }
  }

  mutating func invalidate(_ item: Item) {
    guard isValid(item) else { return }
    let wasBound = isBound(item)
    switch item {
    case .source(let source):
      sources[source].isValid = false
      sources[source].signal = nil
    case .observer(let observer): observers[observer].isValid = false
    case .timer(let timer): timers[timer].isValid = false
    }
    // R106: an item in no mode stays among the common items. M9: it does not.
    guard wasBound || differs(.m9) else { return }
    take(item, outOf: modes.made)
    // R105.
    commonItems.removeAll { $0 == item }
  }

  /// R87, R99b: whether an item is bound to the loop, because it is in one of its modes.
  func isBound(_ item: Item) -> Bool { modes.made.contains { modes[$0]?[item] == true } }

  func isValid(_ item: Item) -> Bool {
    switch item {
    case .source(let source): sources[source].isValid
    case .observer(let observer): observers[observer].isValid
    case .timer(let timer): timers[timer].isValid
    }
  }

  func contains(_ item: Item, _ name: ModeName) -> Bool {
    switch name {
    case .mode(let mode): return modes[mode]?[item] == true
    case .common:
      // R99g. M9: observers behave the same.
      switch item {
      case .timer: return isBound(item) && commonItems.contains(item)
      case .observer: return (isBound(item) || !differs(.m9)) && commonItems.contains(item)
      case .source: return commonItems.contains(item)
      }
    }
  }

  /// R115: removes the sources from all modes, as the end of the loop's thread does.
  mutating func end() {
    for source in sources.indices { take(.source(source), outOf: modes.made) }
  }

  /// R102: makes a mode common.
  ///
  /// The common items are added in the order in which they became common. Core Foundation has a set; its machine
  /// ensures this order.
  mutating func addCommonMode(_ mode: Int) {
    // M3: a block for the common modes may now be one for the sleeping mode.
    if differs(.m3) { poke() }
    guard commonModes.insert(mode).inserted else { return }
    for item in commonItems where isValid(item) { insert(item, mode) }
  }

  /// Whether a mode has neither sources nor timers.
  func holdsNoItem(_ mode: Int) -> Bool {
    modes[mode].map { $0.sources.isEmpty && $0.timers.isEmpty } ?? true
  }
}
