// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem

/// An element of a ``DeadlineHeap``, which stores its approximate position in the heap.
protocol DeadlineHeapMember: AnyObject {
  /// Stores the member's position in the heap of the given kind that belongs to `owner`, or −1 if it has left the heap.
  ///
  /// The position is not updated when the member moves up, so the member is at the stored position or an ancestor of
  /// it.
  func setPlace(_ place: Int32, in owner: ObjectIdentifier, kind: DeadlineHeapKind)
  /// Returns the order among members with equal ticks in the heaps of `owner`, which inserting or moving a member
  /// increases.
  func turn(in owner: ObjectIdentifier) -> UInt64
}

enum DeadlineHeapKind: Sendable {
  /// Ordered by deadline.
  case due
  /// Ordered by deadline plus tolerance, which limits how long the loop may sleep.
  case latest
}

/// A four-ary heap ordered by tick, then by turn.
///
/// The heap stores the ticks itself, so that sifting compares them without accessing the members, which are scattered
/// in memory; only members with equal ticks are asked for their turns. Sifting down does not access the members that
/// it moves up either, so a member to be removed or moved is searched for upwards from its stored position. The four
/// children of an entry share a cache line. Only growing the heap allocates memory.
///
/// - Complexity: O(log n) for insertion, removal and moves; O(1) for the first member
struct DeadlineHeap<Member: DeadlineHeapMember>: ~Copyable {
  fileprivate struct Entry {
    let tick: Tick
    /// The heap owns one reference to the member.
    let member: Unmanaged<Member>
  }

  /// A due member, to which the list that contains it owns a reference.
  struct Due {
    let tick: Tick
    /// The member, or `nil` after it was taken.
    private(set) var unmanaged: Unmanaged<Member>?
    var isCalled = false
    fileprivate let place: Int32

    fileprivate init(_ entry: Entry, place: Int) {
      tick = entry.tick
      unmanaged = entry.member
      self.place = Int32(truncatingIfNeeded: place)
    }

    var member: Member? { unmanaged?.takeUnretainedValue() }

    /// Prefetches the member, which will soon be called.
    func prefetch() { if let unmanaged { crl_prefetch(unmanaged.toOpaque()) } }

    /// Transfers the list's reference to the caller.
    mutating func take() -> Unmanaged<Member>? { unmanaged.take() }
  }

  let kind: DeadlineHeapKind
  /// The owner of the heap, which identifies it to members that are in several.
  private let owner: ObjectIdentifier
  private(set) var count = 0
  private var capacity = 0
  private var entries = DeadlineHeap.memory(0)

  init(kind: DeadlineHeapKind, owner: ObjectIdentifier) {
    self.kind = kind
    self.owner = owner
  }

  deinit {
    for place in 0..<count { entries[place].member.release() }
    DeadlineHeap.free(entries, capacity)
  }

  var isEmpty: Bool { count == 0 }
  /// The earliest tick, or ``Tick/never``.
  var firstTick: Tick { count == 0 ? .never : entries[0].tick }
  var first: Member? { count == 0 ? nil : entries[0].member.takeUnretainedValue() }

  @inline(__always)
  mutating func insert(_ member: Member, at tick: Tick) {
    if count == capacity { grow() }
    count += 1
    siftUp(Entry(tick: tick, member: .passRetained(member)), from: count - 1)
  }

  /// Removes a member with a stored position; the caller must hold its own reference to the member.
  mutating func remove(_ member: Member, from told: Int32) { take(member, from: told).release() }

  /// Removes a member with a stored position, and transfers the heap's reference to the caller.
  @inline(__always)
  mutating func take(_ member: Member, from told: Int32) -> Unmanaged<Member> {
    let place = place(of: member, from: told)
    let taken = entries[place].member
    member.setPlace(-1, in: owner, kind: kind)
    count -= 1
    if place < count {
      let last = entries[count]
      // Prefetched because its position is stored in the end, and it may be anywhere in memory.
      crl_prefetch(last.member.toOpaque())
      if place > 0, isBefore(last, entries[(place - 1) / 4]) {
        siftUp(last, from: place)
      } else {
        siftDown(last, from: place)
      }
    }
    return taken
  }

  /// Changes the tick of a member with a stored position, whose turn must not have decreased.
  @inline(__always)
  mutating func move(_ member: Member, from told: Int32, to tick: Tick) {
    let place = place(of: member, from: told)
    let entry = Entry(tick: tick, member: entries[place].member)
    if tick < entries[place].tick {
      siftUp(entry, from: place)
    } else if 4 &* place &+ 1 < count {
      siftDown(entry, from: place)
    } else {
      // A leaf, as most entries are.
      entries[place] = entry
    }
  }

  /// Removes every member and releases the memory; the caller must hold its own references to the members.
  mutating func removeAll() {
    for place in 0..<count {
      entries[place].member._withUnsafeGuaranteedRef { $0.setPlace(-1, in: owner, kind: kind) }
    }
    self = DeadlineHeap(kind: kind, owner: owner)
  }

  /// Appends every member whose tick is at most `now` to `due`, in order, each with a reference.
  func collect(dueAt now: Tick, into due: inout ContiguousArray<Due>) {
    guard firstTick <= now, count > 0 else { return }
    let start = due.count
    due.append(Due(entries[0], place: 0))
    // The due entries form a subtree at the root. Traversed by level, they are nearly in order, and the list itself
    // serves as the queue of the traversal. The members are scattered in memory, so they are prefetched meanwhile.
    var index = start
    while index < due.count {
      let children = 4 * Int(due[index].place) + 1
      let end = max(children, min(children + 4, count))
      for child in children..<end where entries[child].tick <= now {
        crl_prefetch(entries[child].member.toOpaque())
        due.append(Due(entries[child], place: child))
      }
      index += 1
    }
    due.withUnsafeMutableBufferPointer { buffer in
      let collected = UnsafeMutableBufferPointer(rebasing: buffer[start...])
      Self.sort(collected, owner)
      for due in collected { _ = due.unmanaged?.retain() }
    }
  }

  /// Sorts the collected members in place.
  ///
  /// The standard library's sort allocates memory, which makes `malloc` consolidate all the blocks freed by fired
  /// timers. Shellsort does not allocate, and is fast on nearly sorted input.
  private static func sort(_ due: UnsafeMutableBufferPointer<Due>, _ owner: ObjectIdentifier) {
    var gap = due.count
    while gap > 1 {
      gap = max(1, gap * 4 / 9)
      for index in gap..<due.count {
        let moved = due[index]
        var place = index
        while place >= gap, isBefore(moved, due[place - gap], owner) {
          due[place] = due[place - gap]
          place -= gap
        }
        due[place] = moved
      }
    }
  }

  @inline(__always)
  private static func isBefore(_ left: Due, _ right: Due, _ owner: ObjectIdentifier) -> Bool {
    guard left.tick == right.tick, let one = left.unmanaged, let other = right.unmanaged else {
      return left.tick < right.tick
    }
    return isBeforeByTurn(one, other, owner)
  }

  /// Returns the position of a member, which is its stored position or an ancestor of it.
  @inline(__always)
  private func place(of member: Member, from told: Int32) -> Int {
    let sought = Unmanaged.passUnretained(member).toOpaque()
    precondition(told >= 0 && count > 0, "no member has the place \(told)")
    // A member that fires is usually the first, whatever its stored position.
    if entries[0].member.toOpaque() == sought { return 0 }
    var place = Int(told)
    while place >= count || entries[place].member.toOpaque() != sought {
      precondition(place > 0, "a member stands neither at \(told) nor above")
      place = (place &- 1) / 4
    }
    return place
  }
}

extension DeadlineHeap {
  @inline(__always)
  private func isBefore(_ left: Entry, _ right: Entry) -> Bool {
    if _slowPath(left.tick == right.tick) { return Self.isBeforeByTurn(left.member, right.member, owner) }
    return left.tick < right.tick
  }

  @inline(never)
  private static func isBeforeByTurn(
    _ left: Unmanaged<Member>, _ right: Unmanaged<Member>, _ owner: ObjectIdentifier
  ) -> Bool {
    left._withUnsafeGuaranteedRef { $0.turn(in: owner) } < right._withUnsafeGuaranteedRef { $0.turn(in: owner) }
  }

  @inline(__always)
  private func put(_ entry: Entry, at place: Int) {
    entries[place] = entry
    entry.member._withUnsafeGuaranteedRef {
      $0.setPlace(Int32(truncatingIfNeeded: place), in: owner, kind: kind)
    }
  }

  private mutating func siftUp(_ entry: Entry, from start: Int) {
    var place = start
    while place > 0 {
      let parent = (place &- 1) / 4
      guard isBefore(entry, entries[parent]) else { break }
      put(entries[parent], at: place)
      place = parent
    }
    put(entry, at: place)
  }

  private mutating func siftDown(_ entry: Entry, from start: Int) {
    var place = start
    // A large heap exceeds the caches, so it is prefetched a level ahead.
    let isLarge = count > 16_384
    while true {
      if isLarge { prefetchGrandchildren(of: place) }
      guard let child = leastChild(of: place), isBefore(entries[child], entry) else { break }
      // The stored position is not updated, because accessing the member would cause a cache miss at every level.
      entries[place] = entries[child]
      place = child
    }
    put(entry, at: place)
  }

  @inline(__always)
  private func prefetchGrandchildren(of place: Int) {
    let first = 16 &* place &+ 5
    crl_prefetch(entries + first)
    crl_prefetch(entries + (first &+ 8))
  }

  @inline(__always)
  private func leastChild(of place: Int) -> Int? {
    let first = 4 &* place &+ 1
    if first &+ 4 <= count {
      // Compared in pairs, so that the first two comparisons are independent of each other.
      return lesser(lesser(first, first &+ 1), lesser(first &+ 2, first &+ 3))
    }
    guard first < count else { return nil }
    return (first..<count).min { isBefore(entries[$0], entries[$1]) }
  }

  @inline(__always)
  private func lesser(_ left: Int, _ right: Int) -> Int { isBefore(entries[right], entries[left]) ? right : left }
}

extension DeadlineHeap {
  @inline(never)
  private mutating func grow() {
    let grown = capacity + max(4, capacity / 4)
    precondition(grown <= Int(Int32.max), "\(grown) timers in one mode")
    let memory = Self.memory(grown)
    memory.moveInitialize(from: entries, count: count)
    Self.free(entries, capacity)
    (entries, capacity) = (memory, grown)
  }

  /// Allocates memory for `capacity` entries, or returns an unused address if `capacity` is 0.
  ///
  /// The second entry, the first one with siblings, starts a cache line.
  private static func memory(_ capacity: Int) -> UnsafeMutablePointer<Entry> {
    guard capacity > 0 else { return UnsafeMutablePointer(bitPattern: 64).unsafelyUnwrapped }
    let lines = UnsafeMutableRawPointer.allocate(
      byteCount: (capacity + 3) * MemoryLayout<Entry>.stride, alignment: 64)
    return lines.assumingMemoryBound(to: Entry.self) + 3
  }

  private static func free(_ entries: UnsafeMutablePointer<Entry>, _ capacity: Int) {
    if capacity > 0 { UnsafeMutableRawPointer(entries - 3).deallocate() }
  }
}

extension DeadlineHeap {
  /// The members in no particular order.
  var unordered: [Member] { (0..<count).map { entries[$0].member.takeUnretainedValue() } }

  /// The members in order.
  ///
  /// - Complexity: O(n log n)
  var sorted: [Member] {
    (0..<count).sorted { isBefore(entries[$0], entries[$1]) }.map { entries[$0].member.takeUnretainedValue() }
  }

  /// Checks the heap's invariants, for tests: no child precedes its parent, and every member is found from its stored
  /// position.
  func checkInvariants(told: (Member) -> Int32) {
    for place in 0..<count {
      let entry = entries[place]
      let member = entry.member.takeUnretainedValue()
      let found = self.place(of: member, from: told(member))
      precondition(found == place, "the member of the place \(place) is found at \(found)")
      precondition(place == 0 || isBefore(entries[(place - 1) / 4], entry), "entry \(place) is below a later one")
    }
  }
}
