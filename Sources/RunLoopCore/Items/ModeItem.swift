// SPDX-License-Identifier: Apache-2.0

/// What sources, ports, timers and observers have in common: they are in modes of loops.
///
/// **Locks.** An item has a lock, a loop has one for its table of modes; a thread that needs both locks the item first.
/// What says where an item is changes only under both, so that either is enough to read it; but where a timer stands in
/// the heaps of a loop is that loop's to change, under its lock alone. All else of a timer that has been in a loop is
/// guarded by that lock alone too: `Timer+Home.swift` says how.
protocol ModeItem: AnyObject, Sendable {
  func lockItem()
  func unlockItem()

  /// Keeps the item's closures from being released; false once it is invalid.
  func hold() -> Bool
  /// Ends a hold.
  func letGo()

  /// Not invalidated yet.
  var isOpen: Bool { get }
  /// Whether this item may be in a mode of `loop`: some kinds are in one loop at a time.
  ///
  /// One that is among another loop's common items and in none of its modes leaves that loop for it. Under the item's
  /// lock alone; the caller keeps `former` until it has released it, as this may be the last reference to the loop.
  func mayJoin(_ loop: RunLoop, leaving former: inout RunLoop?) -> Bool
  /// Whether the item, which is among a loop's common items, is so for those who ask; under both locks.
  func countsAsCommon(of loop: RunLoop) -> Bool

  /// Notes that the item is or is not one of the loop's common items. Under both locks.
  func setCommon(_ isCommon: Bool, of loop: RunLoop)
  /// The concrete modes of a loop that the item is in. Under both locks.
  func modes(of loop: RunLoop) -> ShortList<ModeState>
  /// Whether the item is in a concrete mode. Under both locks.
  func isIn(_ mode: ModeState, of loop: RunLoop) -> Bool
  /// Enters a concrete mode in which it is not. Under both locks.
  ///
  /// Only what needs a descriptor of the system can fail.
  func enter(_ mode: ModeState, of loop: RunLoop, _ table: inout ModeTable) throws(SystemError)
  /// Leaves a concrete mode in which it is. Under both locks.
  func leave(_ mode: ModeState, of loop: RunLoop)
}

extension ModeItem {
  func mayJoin(_ loop: RunLoop, leaving former: inout RunLoop?) -> Bool { true }
  func countsAsCommon(of loop: RunLoop) -> Bool { true }
}

/// A multiple-loop item's place in one mode of one loop.
final class Membership<Item: AnyObject>: @unchecked Sendable {
  let item: Item
  let loop: RunLoop
  let mode: ModeState
  /// Whether the item stands in the mode's list of ready items, and between which; guarded by the loop's table lock.
  @exclusivity(unchecked) var isQueued = false
  @exclusivity(unchecked) fileprivate var next: Unmanaged<Membership<Item>>?
  @exclusivity(unchecked) fileprivate var previous: Unmanaged<Membership<Item>>?
  /// False once the item has left the mode; guarded by the loop's table lock.
  @exclusivity(unchecked) var isActive = true

  init(_ item: Item, loop: RunLoop, mode: ModeState) {
    self.item = item
    self.loop = loop
    self.mode = mode
  }
}

/// Where an item is that may be in many loops at once; guarded by the item's lock.
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

  func forEach(_ body: (Membership<Item>) -> Void) {
    all.withUnsafeBufferPointer { for index in $0.indices { body($0[index]) } }
  }

  func modes(of loop: RunLoop) -> ShortList<ModeState> {
    var modes = ShortList<ModeState>()
    for membership in all where membership.loop === loop { modes.append(membership.mode) }
    return modes
  }

  /// The loops that this item is in, each once.
  var loops: ShortList<RunLoop> {
    var loops = ShortList<RunLoop>()
    for loop in commonLoops { loops.append(loop) }
    for membership in all where !loops.contains(where: { $0 === membership.loop }) { loops.append(membership.loop) }
    return loops
  }
}

/// Items of one mode that have something to do, each at most once, in the order in which they came.
///
/// A list through the memberships themselves, which belong to the mode. It is guarded by the loop's table lock, and an
/// item leaves it when it leaves the mode.
struct ReadyList<Item: AnyObject> {
  private var first: Unmanaged<Membership<Item>>?
  private var last: Unmanaged<Membership<Item>>?

  var isEmpty: Bool { first == nil }

  /// Appends an item, unless it stands here already; O(1).
  mutating func enqueue(_ membership: Membership<Item>) {
    guard membership.isActive, !membership.isQueued else { return }
    let added = Unmanaged.passUnretained(membership)
    membership.isQueued = true
    membership.previous = last
    if let last { last._withUnsafeGuaranteedRef { $0.next = added } } else { first = added }
    last = added
  }

  /// Takes an item out, if it stands here; O(1).
  mutating func remove(_ membership: Membership<Item>) {
    guard membership.isQueued else { return }
    membership.isQueued = false
    let (previous, next) = (membership.previous, membership.next)
    if let previous { previous._withUnsafeGuaranteedRef { $0.next = next } } else { first = next }
    if let next { next._withUnsafeGuaranteedRef { $0.previous = previous } } else { last = previous }
    membership.next = nil
    membership.previous = nil
  }

  /// The first item, if it is the only one.
  var only: Item? {
    @inline(__always) get { first?._withUnsafeGuaranteedRef { $0.next == nil ? $0.item : nil } }
  }

  /// Takes the first item that has something to do; those in front of it that have nothing leave the list.
  mutating func takeFirst(unless isIdle: (Item) -> Bool) -> Membership<Item>? {
    guard peekFirst(unless: isIdle), let found = first?.takeUnretainedValue() else { return nil }
    remove(found)
    return found
  }

  /// Whether an item has something to do; those in front of the first such that have nothing leave the list.
  mutating func peekFirst(unless isIdle: (Item) -> Bool) -> Bool {
    while let first {
      if first._withUnsafeGuaranteedRef({ !isIdle($0.item) }) { return true }
      remove(first.takeUnretainedValue())
    }
    return false
  }

  /// Calls `body` with each item that has something to do; the others leave the list.
  ///
  /// O(n).
  mutating func forEach(unless isIdle: (Item) -> Bool, _ body: (Item) -> Void) {
    var next = first?.takeUnretainedValue()
    while let membership = next {
      next = membership.next?.takeUnretainedValue()
      if isIdle(membership.item) { remove(membership) } else { body(membership.item) }
    }
  }
}
