/// What sources, ports, timers and observers have in common: they are in modes of loops.
///
/// **Locks.** An item has a lock, a loop has one for its table of modes; whoever needs both takes the item's first. What
/// says where an item is changes only under both, so that either is enough to read it.
protocol RunLoopItem: AnyObject, Sendable {
  func lockItem()
  func unlockItem()

  /// Keeps the item's closures from being released; false once it is invalid.
  func hold() -> Bool
  /// Ends a hold.
  func letGo()

  /// Not invalidated yet.
  var isOpen: Bool { get }
  /// Whether this item may be in a mode of `loop`: some kinds are bound to one loop at a time. Under the item's lock.
  func mayJoin(_ loop: RunLoop) -> Bool

  /// Notes that the item is or is not one of the loop's common items. Under both locks.
  func setCommon(_ isCommon: Bool, of loop: RunLoop)
  /// The concrete modes of a loop that the item is in. Under both locks.
  func modes(of loop: RunLoop) -> ContiguousArray<ModeState>
  /// Whether the item is in a concrete mode. Under both locks.
  func isIn(_ mode: ModeState, of loop: RunLoop) -> Bool
  /// Enters a concrete mode in which it is not. Under both locks.
  ///
  /// Only what needs a descriptor of the system can fail.
  func enter(_ mode: ModeState, of loop: RunLoop, _ table: inout ModeTable) throws(SystemError)
  /// Leaves a concrete mode in which it is. Under both locks.
  func leave(_ mode: ModeState, of loop: RunLoop)
}

/// A multiple-loop item's place in one mode of one loop.
final class Membership<Item: AnyObject>: @unchecked Sendable {
  let item: Item
  let loop: RunLoop
  let mode: ModeState
  /// Whether the item stands in the mode's list of ready items.
  ///
  /// Guarded by the loop's table lock.
  var isQueued = false
  /// False once the item has left the mode.
  ///
  /// Guarded by the loop's table lock.
  var isActive = true

  init(_ item: Item, loop: RunLoop, mode: ModeState) {
    self.item = item
    self.loop = loop
    self.mode = mode
  }
}

/// Where an item is that may be in many loops at once.
///
/// Guarded by the item's lock.
struct Memberships<Item: AnyObject> {
  private(set) var all: ContiguousArray<Membership<Item>> = []
  private(set) var commonLoops: ContiguousArray<RunLoop> = []

  mutating func insert(_ membership: Membership<Item>) {
    all.append(membership)
  }

  mutating func remove(_ membership: Membership<Item>) {
    if let index = all.firstIndex(where: { $0 === membership }) { all.remove(at: index) }
  }

  mutating func setCommon(_ isCommon: Bool, of loop: RunLoop) {
    let index = commonLoops.firstIndex { $0 === loop }
    switch (isCommon, index) {
    case (true, nil): commonLoops.append(loop)
    case (false, let index?): commonLoops.remove(at: index)
    default: break
    }
  }

  func modes(of loop: RunLoop) -> ContiguousArray<ModeState> {
    var modes: ContiguousArray<ModeState> = []
    for membership in all where membership.loop === loop { modes.append(membership.mode) }
    return modes
  }

  /// The loops that this item is in, each once.
  var loops: ContiguousArray<RunLoop> {
    var loops = commonLoops
    for membership in all where !loops.contains(where: { $0 === membership.loop }) { loops.append(membership.loop) }
    return loops
  }
}

/// Items of one mode that have something to do, each at most once.
///
/// Guarded by the loop's table lock.
struct ReadyList<Item: AnyObject> {
  private(set) var entries: ContiguousArray<Membership<Item>> = []

  var isEmpty: Bool { entries.isEmpty }
  var count: Int { entries.count }

  mutating func enqueue(_ membership: Membership<Item>) {
    guard membership.isActive, !membership.isQueued else { return }
    membership.isQueued = true
    entries.append(membership)
  }

  /// Drops what has left the mode or has nothing to do any more, keeping the order.
  mutating func purge(keeping isReady: (Item) -> Bool) {
    var kept = 0
    for index in entries.indices {
      let entry = entries[index]
      if entry.isActive, isReady(entry.item) {
        if kept != index { entries.swapAt(kept, index) }
        kept += 1
      } else {
        entry.isQueued = false
      }
    }
    entries.removeSubrange(kept...)
  }

  /// Takes the first entry.
  mutating func takeFirst() -> Membership<Item> {
    let first = entries.removeFirst()
    first.isQueued = false
    return first
  }
}
