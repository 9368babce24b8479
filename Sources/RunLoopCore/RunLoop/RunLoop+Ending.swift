import Synchronization

extension RunLoop {
  /// Ends the loop with its thread: sources leave with their cancel call-outs, timers and observers are free to join another
  /// loop, blocks are dropped and counted, and from now on everything is refused.
  ///
  /// On the loop's own thread, for which it still is ``current`` meanwhile.
  func end() {
    stopFlag.endEveryRun()
    let items = table.withLock { table in
      table.die()
      return table.allItems
    }
    for item in items where item.hold() {
      expel(item)
      item.letGo()
    }
    dropBlocks()
    for mode in table.withLock({ $0.modes.values }) { mode.dropObserverLists() }
  }

  private func dropBlocks() {
    inbox.close()
    sortArrivals()
    var dropped: [Block] = []
    func drop(_ queue: inout BlockQueue) {
      while !queue.isEmpty { if let block = queue.takeFirst().work.take() { dropped.append(block) } }
    }
    for mode in table.withLock({ $0.modes.values }) { drop(&mode.blocks) }
    drop(&blocks.common)
    counters.droppedBlocks.wrappingAdd(dropped.count, ordering: .relaxed)
  }
}

extension ModeTable {
  /// Everything that is in the loop, each item once.
  var allItems: [any RunLoopItem] {
    var items: [ObjectIdentifier: any RunLoopItem] = commonItems.mapValues(\.item)
    for mode in modes.values {
      for item in mode.items { items[ObjectIdentifier(item)] = item }
    }
    return Array(items.values)
  }
}

extension ModeState {
  /// The items of the mode: sources, ports, timers, observers.
  ///
  /// Under the table's lock.
  var items: [any RunLoopItem] {
    var items: [any RunLoopItem] = sources.values.map(\.item)
    for membership in ports.values { items.append(membership.item) }
    for membership in descriptors.values { items.append(membership.item) }
    for timer in timers.all { items.append(timer) }
    for observer in observers { items.append(observer) }
    return items
  }
}
