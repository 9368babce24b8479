// SPDX-License-Identifier: Apache-2.0

import Synchronization

// Adding, removing and looking up items of every kind.
extension RunLoop {
  /// Adds an item to a mode or, for ``Mode/common``, to the common items and so to every common mode.
  ///
  /// Returns `false` if the item was rejected: it is invalid or belongs to another loop, this loop has ended, or the
  /// system cannot watch its descriptor.
  @discardableResult
  func join(_ item: some ModeItem, _ name: Mode, isReported: Bool = true) -> Bool {
    attempt(item, name).map { reject($0, itemName(item), isReported: isReported) } ?? true
  }

  /// Adds an item to a mode, or returns the reason why it was rejected.
  ///
  /// The item is added to all of its modes or to none.
  func attempt(_ item: some ModeItem, _ name: Mode) -> Rejection? {
    // Checked before taking the item's lock, which in a forked child may be held forever by a thread of the parent.
    table.checkFork()
    // Keeps the source's closures for pending call-outs, even if the source is invalidated meanwhile.
    let source = item as? Source
    if let source, !source.hold() { return .invalidItem }
    defer { source?.letGo() }
    var entered = ShortList<ModeState>()
    let place = AddedPlace.takeIfWatched()
    // Released after the item's lock.
    var former: RunLoop?
    item.lockItem()
    let rejection: Rejection? =
      if !item.isOpen {
        .invalidItem
      } else if !item.mayJoin(self, leaving: &former) {
        .boundItem(nil)
      } else {
        insert(item, name, &entered, from: place)
      }
    item.unlockItem()
    defer { withExtendedLifetime(former) {} }
    guard rejection == nil else { return rejection.map { if case .boundItem = $0 { .boundItem(former) } else { $0 } } }
    source?.callForModes(entered, of: self)
    return nil
  }

  /// Removes an item from a mode or, for ``Mode/common``, a common item from every common mode.
  func part(_ item: some ModeItem, _ name: Mode) {
    table.checkFork()
    // If the item cannot be held, the thread that invalidates it removes it.
    guard item.hold() else { return }
    defer { item.letGo() }
    var left = ShortList<ModeState>()
    item.lockItem()
    table.withLock { table in
      if name == .common {
        guard table.removeCommon(item) else { return }
        for name in table.commonNames {
          if let mode = table.modes[name], item.isIn(mode, of: self) { leave(item, mode, &left, &table) }
        }
        item.setCommon(false, of: self)
      } else if let mode = table.modes[name], item.isIn(mode, of: self) {
        leave(item, mode, &left, &table)
      }
    }
    item.unlockItem()
    finishLeaving(item, left)
  }

  /// Removes an item from all modes of this loop.
  ///
  /// The caller must hold the item.
  func expel(_ item: some ModeItem) {
    var left = ShortList<ModeState>()
    item.lockItem()
    table.withLock { table in
      for mode in item.modes(of: self) { leave(item, mode, &left, &table) }
      // An item that has moved to another loop is no longer marked as common by this one.
      if table.removeCommon(item) { item.setCommon(false, of: self) }
      if table.isDead, let timer = item as? Timer, timer.isAt(self) { timer.setHome(nil) }
      if let port = item as? Port, table.removeAdded(port) { port.registrations.setAdopted(false, by: self) }
    }
    item.unlockItem()
    finishLeaving(item, left)
  }

  /// Returns whether an item is in a mode or, for ``Mode/common``, is one of the common items.
  func holds(_ item: some ModeItem, _ name: Mode) -> Bool {
    table.checkFork()
    item.lockItem()
    defer { item.unlockItem() }
    return table.withLock { table in
      if name == .common { return table.commonItems[ObjectIdentifier(item)] != nil && item.countsAsCommon(of: self) }
      guard let mode = table.modes[name] else { return false }
      return item.isIn(mode, of: self)
    }
  }

  /// Makes a mode common, so that it contains every item added to ``Mode/common``, now or later.
  ///
  /// The current common items enter the mode in the order in which they were added. Calling it again has no effect.
  /// Can be called from any thread. The corresponding Core Foundation function is `CFRunLoopAddCommonMode`.
  ///
  /// - Throws: ``RunLoopError/notAMode(_:)`` for ``Mode/common`` itself, ``RunLoopError/loopHasEnded``, and, if the
  ///   system runs out of descriptors, ``RunLoopError/cannotWatch(descriptor:_:)`` or
  ///   ``RunLoopError/cannotServeMainQueue(_:_:)``. If it throws, no item has entered the mode.
  public func addCommonMode(_ mode: Mode) throws(RunLoopError) {
    guard mode != .common else { throw .notAMode(mode) }
    // The steps that can fail run before the mode becomes common. The order of descriptor sources is irrelevant.
    let watching = try table.withLock { table throws(RunLoopError) in
      guard !table.isDead else { throw endedError }
      return table.commonNames.contains(mode) ? [] : table.orderedCommonItems.compactMap { $0 as? DescriptorSource }
    }
    var copied: [DescriptorSource] = []
    do throws(RunLoopError) {
      for source in watching where try copyCommon(source, mode) { copied.append(source) }
      let items = try makeCommon(mode)
      for item in items { _ = try? copyCommon(item, mode) }
    } catch {
      for source in copied { part(source, mode) }
      throw error
    }
    mainService?.modeBecameCommon(mode, of: self)
    post()
  }

  /// Makes a mode common, and returns the common items to add to it.
  private func makeCommon(_ name: Mode) throws(RunLoopError) -> [any ModeItem] {
    try table.withLock { table throws(RunLoopError) in
      do throws(SystemError) {
        return try table.makeCommon(name) ? table.orderedCommonItems : []
      } catch {
        throw .cannotServeMainQueue(name, error)
      }
    }
  }

  /// Adds a common item to another mode, and returns whether it was not there before.
  private func copyCommon(_ item: some ModeItem, _ name: Mode) throws(RunLoopError) -> Bool {
    let source = item as? Source
    if let source, !source.hold() { return false }
    defer { source?.letGo() }
    do throws(SystemError) {
      let entered = try enterAsCommon(item, name)
      source?.callForModes(entered, of: self)
      return !entered.isEmpty
    } catch {
      throw .cannotWatch(descriptor: (item as? DescriptorSource)?.descriptor ?? -1, error)
    }
  }

  private func enterAsCommon(_ item: some ModeItem, _ name: Mode) throws(SystemError) -> ShortList<ModeState> {
    var entered = ShortList<ModeState>()
    item.lockItem()
    defer { item.unlockItem() }
    guard item.isOpen else { return ShortList() }
    try table.withLock { table throws(SystemError) in
      guard !table.isDead, table.commonItems[ObjectIdentifier(item)] != nil else { return }
      try enter(item, table.mode(name), &entered, &table)
    }
    return entered
  }
}

extension RunLoop {
  /// The reason why an item or a block was rejected.
  enum Rejection {
    case invalidItem
    /// The item is in a mode of the given loop.
    case boundItem(RunLoop?)
    case endedLoop
    case noMode
    case system(SystemError)
  }

  /// Counts a rejected item or block and, if it may be a mistake, reports it.
  ///
  /// - Parameter isReported: Whether to report it, because the caller throws no error.
  func reject(_ rejection: Rejection, _ what: @autoclosure () -> String = "a block", isReported: Bool = true) -> Bool {
    counters.rejections.wrappingAdd(1, ordering: .relaxed)
    guard isReported else { return false }
    switch rejection {
    case .invalidItem: break
    case .boundItem(let home):
      Diagnostic.boundItem.report(
        "\(what()) is in the run loop of \(home?.threadDescription ?? "another thread") and was not added to that of "
          + "\(threadDescription): remove it from its loop first, or make one for each loop")
    case .endedLoop: reportEnded(what())
    case .noMode:
      Diagnostic.noMode.report(
        "the run loop of \(threadDescription) rejected \(what()) because its list of modes is empty: name at least one mode, "
          + "such as .default")
    case .system: break
    }
    return false
  }

  private func insert(
    _ item: some ModeItem, _ name: Mode, _ entered: inout ShortList<ModeState>, from place: AddedPlace?
  ) -> Rejection? {
    let (rejection, wakes) = table.withLock { table -> (Rejection?, Bool) in
      // This lock alone guards a timer's invalidation, so the timer may have become invalid since the check.
      guard item.isOpen else { return (.invalidItem, false) }
      guard !table.isDead else { return (.endedLoop, false) }
      do throws(SystemError) {
        if name != .common {
          try enter(item, table.mode(name), &entered, &table)
        } else {
          for name in table.commonNames { try enter(item, table.mode(name), &entered, &table) }
        }
      } catch {
        for mode in entered { item.leave(mode, of: self) }
        entered = ShortList()
        return (.system(error), false)
      }
      if name == .common {
        table.insertCommon(item)
        item.setCommon(true, of: self)
      }
      if !entered.isEmpty { note(place, of: item) }
      guard let sleeping = table.sleepingMode, entered.contains(where: { $0 === sleeping }) else { return (nil, false) }
      return (nil, needsLook(item, sleeping, table))
    }
    if wakes { post() }
    return rejection
  }

  /// Whether an item that was added to the mode in which the loop sleeps requires the loop to wake up.
  ///
  /// Requires the item's and the table's locks.
  private func needsLook(_ item: some ModeItem, _ sleeping: ModeState, _ table: ModeTable) -> Bool {
    switch item {
    case let timer as Timer: self.table.sleepsTooLong(for: timer, in: sleeping)
    // A loop that waits elsewhere must switch to the mode's new epoll set.
    case is DescriptorSource: table.waitingIn !== sleeping.pollSet
    default: !sleeping.readyPorts.isEmpty
    }
  }

  /// Requires the item's and the table's locks.
  private func enter(
    _ item: some ModeItem, _ mode: ModeState, _ entered: inout ShortList<ModeState>, _ table: inout ModeTable
  ) throws(SystemError) {
    guard !item.isIn(mode, of: self) else { return }
    try item.enter(mode, of: self, &table)
    entered.append(mode)
  }

  /// Requires the item's and the table's locks.
  private func leave(
    _ item: some ModeItem, _ mode: ModeState, _ left: inout ShortList<ModeState>, _ table: inout ModeTable
  ) {
    item.leave(mode, of: self)
    left.append(mode)
  }

  /// Ends a wait in another loop if a call-out of that loop has removed the last item.
  ///
  /// For the loop's own thread, such a call-out is part of the pass, and a run finishes if its mode is empty at the
  /// end of a pass. Must be called on the loop's thread with no locks held.
  @inline(__always)
  func endHostedWaitIfEmpty() {
    if hostedSleep != nil { wakeIfEmpty() }
  }

  @inline(never)
  private func wakeIfEmpty() {
    // A guest's sleep is ended only by its host.
    guard hostLink != nil, let mode = hostedSleep?.mode, mode.itemCount.load(ordering: .relaxed) == 0 else { return }
    wakeUp()
  }

  /// Makes the calls that follow an item's removal from modes, with no locks held.
  ///
  /// A sleeping loop is not woken even if it lost its last item, because another item may be added soon.
  private func finishLeaving(_ item: some ModeItem, _ left: ShortList<ModeState>) {
    if RunLoop.currentIfMade === self {
      if item is Observer { for mode in left { mode.dropObserverLists() } }
      endHostedWaitIfEmpty()
    }
    if let source = item as? Source { source.callForModes(left, of: self) }
  }
}
