// SPDX-License-Identifier: Apache-2.0

/// An item that can be in the modes of loops: a source, port, timer or observer.
///
/// **Locks.** Each item has a lock, and each loop has one for its mode table; a thread that needs both takes the
/// item's lock first. An item's membership in modes changes only with both locks held, so either suffices for reading
/// it. A timer's position in a loop's heaps is guarded by the loop's lock alone, as is all other state of a timer that
/// has been in a loop; see `Timer+Home.swift`.
protocol ModeItem: AnyObject, Sendable {
  func lockItem()
  func unlockItem()

  /// Prevents the item's closures from being released, and returns `false` if the item is invalid.
  func hold() -> Bool
  /// Ends a hold.
  func letGo()

  var isOpen: Bool { get }
  /// Returns whether this item may be added to a mode of `loop`; some kinds of item belong to one loop at a time.
  ///
  /// An item that is one of another loop's common items but in none of its modes leaves that loop for this one.
  /// Requires the item's lock. The caller must keep `former` until it has released the lock, because it may be the
  /// last reference to the loop.
  func mayJoin(_ loop: RunLoop, leaving former: inout RunLoop?) -> Bool
  /// Returns whether an item in a loop's common items is reported as common; requires both locks.
  func countsAsCommon(of loop: RunLoop) -> Bool

  /// Notes whether the item is one of the loop's common items; requires both locks.
  func setCommon(_ isCommon: Bool, of loop: RunLoop)
  /// The concrete modes of a loop that contain the item (requires both locks).
  func modes(of loop: RunLoop) -> ShortList<ModeState>
  /// Returns whether the item is in a concrete mode; requires both locks.
  func isIn(_ mode: ModeState, of loop: RunLoop) -> Bool
  /// Adds the item to a concrete mode that does not contain it; requires both locks.
  ///
  /// Only items that need a system descriptor can fail to be added.
  func enter(_ mode: ModeState, of loop: RunLoop, _ table: inout ModeTable) throws(SystemError)
  /// Removes the item from a concrete mode that contains it; requires both locks.
  func leave(_ mode: ModeState, of loop: RunLoop)
}

extension ModeItem {
  func mayJoin(_ loop: RunLoop, leaving former: inout RunLoop?) -> Bool { true }
  func countsAsCommon(of loop: RunLoop) -> Bool { true }
}

/// The membership in one mode of one loop of an item that can be in several loops.
final class Membership<Item: AnyObject>: @unchecked Sendable {
  // Sendable: the loop's table lock guards the variables.
  let item: Item
  let loop: RunLoop
  let mode: ModeState
  /// Whether the item is in the mode's list of ready items, and its neighbours there.
  @exclusivity(unchecked) var isQueued = false
  @exclusivity(unchecked) fileprivate var next: Unmanaged<Membership<Item>>?
  @exclusivity(unchecked) fileprivate var previous: Unmanaged<Membership<Item>>?
  /// Whether the item is still in the mode.
  @exclusivity(unchecked) var isActive = true

  init(_ item: Item, loop: RunLoop, mode: ModeState) {
    self.item = item
    self.loop = loop
    self.mode = mode
  }
}

/// The memberships of an item that can be in several loops at once, guarded by the item's lock.
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

  /// The loops that contain this item, without duplicates.
  var loops: ShortList<RunLoop> {
    var loops = ShortList<RunLoop>()
    for loop in commonLoops { loops.append(loop) }
    for membership in all where !loops.contains(where: { $0 === membership.loop }) { loops.append(membership.loop) }
    return loops
  }
}

/// A FIFO list of the items of one mode that have work to do, without duplicates.
///
/// The list is linked through the memberships, which the mode owns. It is guarded by the loop's table lock. An item
/// that is removed from the mode is also removed from this list.
struct ReadyList<Item: AnyObject> {
  private var first: Unmanaged<Membership<Item>>?
  private var last: Unmanaged<Membership<Item>>?

  var isEmpty: Bool { first == nil }

  /// Appends an item unless the list contains it already.
  mutating func enqueue(_ membership: Membership<Item>) {
    guard membership.isActive, !membership.isQueued else { return }
    let added = Unmanaged.passUnretained(membership)
    membership.isQueued = true
    membership.previous = last
    if let last { last._withUnsafeGuaranteedRef { $0.next = added } } else { first = added }
    last = added
  }

  /// Removes an item if the list contains it.
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

  /// Removes and returns the first item with work to do, and removes the idle items before it.
  mutating func takeFirst(unless isIdle: (Item) -> Bool) -> Membership<Item>? {
    guard peekFirst(unless: isIdle), let found = first?.takeUnretainedValue() else { return nil }
    remove(found)
    return found
  }

  /// Returns whether an item has work to do, and removes the idle items before the first such item.
  mutating func peekFirst(unless isIdle: (Item) -> Bool) -> Bool {
    while let first {
      if first._withUnsafeGuaranteedRef({ !isIdle($0.item) }) { return true }
      remove(first.takeUnretainedValue())
    }
    return false
  }

  /// Calls `body` with each item that has work to do, and removes the idle ones.
  ///
  /// - Complexity: O(n)
  mutating func forEach(unless isIdle: (Item) -> Bool, _ body: (Item) -> Void) {
    var next = first?.takeUnretainedValue()
    while let membership = next {
      next = membership.next?.takeUnretainedValue()
      if isIdle(membership.item) { remove(membership) } else { body(membership.item) }
    }
  }
}
