// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem

/// An element of a ``DeadlineHeap``, which stores about where it stands there.
protocol DeadlineHeapMember: AnyObject {
  /// Stores the member's place in the heap `kind` of `owner`; −1: it has left the heap.
  ///
  /// A member that moves up is not told. So it stands where it was told, or above that.
  func setPlace(_ place: Int32, in owner: ObjectIdentifier, kind: DeadlineHeapKind)
  /// The order among members with equal ticks in the heaps of `owner`: one that is inserted or moved later has a
  /// greater turn.
  func turn(in owner: ObjectIdentifier) -> UInt64
}

enum DeadlineHeapKind: Sendable {
  /// By deadline.
  case due
  /// By deadline and tolerance: how long the loop may sleep.
  case latest
}

/// A four-ary heap by tick and, among equals, by turn.
///
/// The ticks stand in the heap itself, so that a sift compares them without a look at the members, which lie all over
/// memory; only where two ticks are the same are they asked for their turns. Nor does a sift down touch the members
/// that it moves up: whoever is to be removed or moved is looked for from the place that it was told upwards. The four
/// children of an entry share a cache line. Insertion, removal and moving are O(log n), the first is O(1), and nothing
/// allocates but growth.
struct DeadlineHeap<Member: DeadlineHeapMember>: ~Copyable {
  fileprivate struct Entry {
    let tick: Tick
    /// The heap owns one reference.
    let member: Unmanaged<Member>
  }

  /// A due member, of which the list that it stands in owns one reference.
  struct Due {
    let tick: Tick
    /// Nil once it was taken.
    private(set) var unmanaged: Unmanaged<Member>?
    /// Whether it is being called.
    var isCalled = false
    fileprivate let place: Int32

    fileprivate init(_ entry: Entry, place: Int) {
      tick = entry.tick
      unmanaged = entry.member
      self.place = Int32(truncatingIfNeeded: place)
    }

    var member: Member? { unmanaged?.takeUnretainedValue() }

    /// Lets the processor fetch the member, which will soon be called.
    func prefetch() { if let unmanaged { crl_prefetch(unmanaged.toOpaque()) } }

    /// Hands the list's reference over.
    mutating func take() -> Unmanaged<Member>? { unmanaged.take() }
  }

  let kind: DeadlineHeapKind
  /// Whose heap it is: a member may be in several.
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
  /// The first member.
  var first: Member? { count == 0 ? nil : entries[0].member.takeUnretainedValue() }

  @inline(__always)
  mutating func insert(_ member: Member, at tick: Tick) {
    if count == capacity { grow() }
    count += 1
    siftUp(Entry(tick: tick, member: .passRetained(member)), from: count - 1)
  }

  /// Removes a member, which was told a place; the caller holds a reference of its own to it.
  mutating func remove(_ member: Member, from told: Int32) { take(member, from: told).release() }

  /// Removes a member, which was told a place, and hands the heap's reference over.
  @inline(__always)
  mutating func take(_ member: Member, from told: Int32) -> Unmanaged<Member> {
    let place = place(of: member, from: told)
    let taken = entries[place].member
    member.setPlace(-1, in: owner, kind: kind)
    count -= 1
    if place < count {
      let last = entries[count]
      // It is told its place in the end, and lies anywhere.
      crl_prefetch(last.member.toOpaque())
      if place > 0, isBefore(last, entries[(place - 1) / 4]) {
        siftUp(last, from: place)
      } else {
        siftDown(last, from: place)
      }
    }
    return taken
  }

  /// Gives a member, which was told a place, another tick, and takes notice of its turn, which is greater than before
  /// or the same.
  @inline(__always)
  mutating func move(_ member: Member, from told: Int32, to tick: Tick) {
    let place = place(of: member, from: told)
    let entry = Entry(tick: tick, member: entries[place].member)
    if tick < entries[place].tick {
      siftUp(entry, from: place)
    } else if 4 &* place &+ 1 < count {
      siftDown(entry, from: place)
    } else {
      // As most do, it has nothing below it.
      entries[place] = entry
    }
  }

  /// Removes every member and releases the memory; the caller holds references of its own to them.
  mutating func removeAll() {
    for place in 0..<count {
      entries[place].member._withUnsafeGuaranteedRef { $0.setPlace(-1, in: owner, kind: kind) }
    }
    self = DeadlineHeap(kind: kind, owner: owner)
  }

  /// Appends to `due` every member whose tick is at most `now`, in order, with a reference.
  func collect(dueAt now: Tick, into due: inout ContiguousArray<Due>) {
    guard firstTick <= now, count > 0 else { return }
    let start = due.count
    due.append(Due(entries[0], place: 0))
    // What is due is a subtree at the top. Level by level, it comes nearly in order; the list says whose children are
    // next. The members lie all over memory: the processor fetches them meanwhile.
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

  /// Puts the collected members in order, in place.
  ///
  /// The library's sort allocates memory, and then `malloc` joins all the pieces that fired timers have left. Shell's
  /// method does not, and is soon done with what is nearly in order.
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

  /// Where a member stands that was told a place: there, or above it.
  @inline(__always)
  private func place(of member: Member, from told: Int32) -> Int {
    let sought = Unmanaged.passUnretained(member).toOpaque()
    precondition(told >= 0 && count > 0, "no member has the place \(told)")
    // Who fires stands first, wherever it was told to.
    if entries[0].member.toOpaque() == sought { return 0 }
    var place = Int(told)
    while place >= count || entries[place].member.toOpaque() != sought {
      precondition(place > 0, "a member stands neither at \(told) nor above")
      place = (place &- 1) / 4
    }
    return place
  }
}

// The order.
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
    // The caches do not hold all of a large heap: it is fetched a level ahead.
    let isLarge = count > 16_384
    while true {
      if isLarge { prefetchGrandchildren(of: place) }
      guard let child = leastChild(of: place), isBefore(entries[child], entry) else { break }
      // Not told: to touch it would be to wait for memory at every level.
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
      // Two and two: neither comparison waits for the other.
      return lesser(lesser(first, first &+ 1), lesser(first &+ 2, first &+ 3))
    }
    guard first < count else { return nil }
    return (first..<count).min { isBefore(entries[$0], entries[$1]) }
  }

  @inline(__always)
  private func lesser(_ left: Int, _ right: Int) -> Int { isBefore(entries[right], entries[left]) ? right : left }
}

// The memory.
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

  /// Memory for so many entries, of which the second, which is the first that has siblings, begins a cache line; for
  /// none, an address that nobody uses.
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
  /// The members in no order.
  var unordered: [Member] { (0..<count).map { entries[$0].member.takeUnretainedValue() } }

  /// The members in order; O(n log n).
  var sorted: [Member] {
    (0..<count).sorted { isBefore(entries[$0], entries[$1]) }.map { entries[$0].member.takeUnretainedValue() }
  }

  /// The heap's rules, for tests: no child before its parent, and every member is found from where it was told.
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
