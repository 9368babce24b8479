// SPDX-License-Identifier: Apache-2.0

/// An element of a ``DeadlineHeap``, which stores the number by which the heap knows it.
protocol DeadlineHeapMember: AnyObject {
  /// Stores the member's place in the heap `kind` of `owner`; −1: it has left the heap.
  func setPlace(_ place: Int32, in owner: ObjectIdentifier, kind: DeadlineHeapKind)
  /// The order among members with equal ticks in the heaps of `owner`: one that is inserted or moved later has a greater turn.
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
/// What a sift moves lies close together: the ticks, and in a table beside them the position of each place. The members, which
/// are as many cache lines all over memory, are not touched; only where two ticks are the same are they asked for their turns.
/// Insertion, removal and moving are O(log n), the first is O(1), and nothing allocates but growth.
struct DeadlineHeap<Member: DeadlineHeapMember>: ~Copyable {
  fileprivate struct Entry {
    let tick: Tick
    let place: Int32
  }

  /// A due member, with a reference of its own.
  struct Due {
    let tick: Tick
    /// Nil once it was taken.
    private(set) var member: Member?
    /// Whether it is being called.
    var isCalled = false
    fileprivate let position: Int32

    fileprivate init(tick: Tick, member: Unmanaged<Member>, position: Int) {
      self.tick = tick
      self.member = member.takeUnretainedValue()
      self.position = Int32(truncatingIfNeeded: position)
    }

    /// Hands the reference over.
    mutating func take() -> Member? { member.take() }
  }

  let kind: DeadlineHeapKind
  /// Whose heap it is: a member may be in several.
  private let owner: ObjectIdentifier
  private(set) var count = 0
  private var capacity = 0
  private var entries = DeadlineHeap.memory(of: Entry.self, 0)
  /// By place: where the entry is; of a free place, the next free one.
  private var positions = DeadlineHeap.memory(of: Int32.self, 0)
  /// By place: the member, to which the heap owns one reference.
  private var members = DeadlineHeap.memory(of: Unmanaged<Member>.self, 0)
  private var freePlace: Int32 = -1
  /// How many places have been in use.
  private var placeCount: Int32 = 0

  init(kind: DeadlineHeapKind, owner: ObjectIdentifier) {
    self.kind = kind
    self.owner = owner
  }

  deinit {
    for position in 0..<count { member(entries[position]).release() }
    guard capacity > 0 else { return }
    entries.deallocate()
    positions.deallocate()
    members.deallocate()
  }

  var isEmpty: Bool { count == 0 }
  /// The earliest tick, or ``Tick/never``.
  var firstTick: Tick { count == 0 ? .never : entries[0].tick }
  /// The first member.
  var first: Member? { count == 0 ? nil : member(entries[0]).takeUnretainedValue() }

  mutating func insert(_ member: Member, at tick: Tick) {
    if count == capacity { grow() }
    let place = takePlace()
    members[Int(place)] = .passRetained(member)
    member.setPlace(place, in: owner, kind: kind)
    count += 1
    siftUp(Entry(tick: tick, place: place), from: count - 1)
  }

  /// Removes the member of a place.
  ///
  /// The caller holds a reference of its own to it.
  mutating func remove(_ place: Int32) {
    let position = position(of: place)
    let removed = members[Int(place)]
    removed._withUnsafeGuaranteedRef { $0.setPlace(-1, in: owner, kind: kind) }
    positions[Int(place)] = freePlace
    freePlace = place
    count -= 1
    if position < count {
      let last = entries[count]
      if position > 0, isBefore(last, entries[(position - 1) / 4]) {
        siftUp(last, from: position)
      } else {
        siftDown(last, from: position)
      }
    }
    removed.release()
  }

  /// Gives the member of a place another tick, and takes notice of its turn, which is greater than before or the same.
  @inline(__always)
  mutating func move(_ place: Int32, to tick: Tick) {
    let position = position(of: place)
    let entry = Entry(tick: tick, place: place)
    if tick < entries[position].tick {
      siftUp(entry, from: position)
    } else if 4 &* position &+ 1 < count {
      siftDown(entry, from: position)
    } else {
      // As most do, it has nothing below it.
      entries[position] = entry
    }
  }

  /// Removes every member and releases the memory.
  ///
  /// The caller holds references of its own to them.
  mutating func removeAll() {
    for position in 0..<count {
      member(entries[position])._withUnsafeGuaranteedRef { $0.setPlace(-1, in: owner, kind: kind) }
    }
    self = DeadlineHeap(kind: kind, owner: owner)
  }

  /// Appends to `due` every member whose tick is at most `now`, in order.
  ///
  /// O(due · log due).
  func collect(dueAt now: Tick, into due: inout ContiguousArray<Due>) {
    guard firstTick <= now, count > 0 else { return }
    let start = due.count
    var isOrdered = true
    due.append(Due(tick: entries[0].tick, member: member(entries[0]), position: 0))
    // What is due is a subtree at the top. Level by level, it comes nearly in order; the list says whose children are next.
    var index = start
    while index < due.count {
      let children = 4 * Int(due[index].position) + 1
      for child in children..<max(children, min(children + 4, count)) where entries[child].tick <= now {
        if entries[child].tick <= due[due.count - 1].tick { isOrdered = false }
        due.append(Due(tick: entries[child].tick, member: member(entries[child]), position: child))
      }
      index += 1
    }
    guard !isOrdered else { return }
    let (entries, members, owner) = (entries, members, owner)
    due.withUnsafeMutableBufferPointer { buffer in
      var tail = UnsafeMutableBufferPointer(rebasing: buffer[start...])
      tail.sort { Self.isBefore(entries[Int($0.position)], entries[Int($1.position)], members, owner) }
    }
  }

  @inline(__always)
  private func member(_ entry: Entry) -> Unmanaged<Member> { members[Int(entry.place)] }

  @inline(__always)
  private func position(of place: Int32) -> Int {
    precondition(place >= 0 && place < placeCount, "there is no place \(place)")
    let position = Int(positions[Int(place)])
    precondition(
      position >= 0 && position < count && entries[position].place == place, "no member has the place \(place)")
    return position
  }
}

// The order.
extension DeadlineHeap {
  @inline(__always)
  private func isBefore(_ left: Entry, _ right: Entry) -> Bool { Self.isBefore(left, right, members, owner) }

  @inline(__always)
  private static func isBefore(
    _ left: Entry, _ right: Entry, _ members: UnsafeMutablePointer<Unmanaged<Member>>, _ owner: ObjectIdentifier
  ) -> Bool {
    left.tick != right.tick
      ? left.tick < right.tick : isBeforeByTurn(members[Int(left.place)], members[Int(right.place)], owner)
  }

  @inline(never)
  private static func isBeforeByTurn(
    _ left: Unmanaged<Member>, _ right: Unmanaged<Member>, _ owner: ObjectIdentifier
  ) -> Bool {
    left._withUnsafeGuaranteedRef { $0.turn(in: owner) } < right._withUnsafeGuaranteedRef { $0.turn(in: owner) }
  }

  @inline(__always)
  private mutating func put(_ entry: Entry, at position: Int) {
    entries[position] = entry
    positions[Int(entry.place)] = Int32(truncatingIfNeeded: position)
  }

  private mutating func siftUp(_ entry: Entry, from start: Int) {
    var position = start
    while position > 0 {
      let parent = (position &- 1) / 4
      guard isBefore(entry, entries[parent]) else { break }
      put(entries[parent], at: position)
      position = parent
    }
    put(entry, at: position)
  }

  private mutating func siftDown(_ entry: Entry, from start: Int) {
    var position = start
    while true {
      var child = 4 &* position &+ 1
      guard child < count else { break }
      let end = min(child &+ 4, count)
      var (least, first) = (child, entries[child])
      child &+= 1
      while child < end {
        let other = entries[child]
        if isBefore(other, first) { (least, first) = (child, other) }
        child &+= 1
      }
      guard isBefore(first, entry) else { break }
      put(first, at: position)
      position = least
    }
    put(entry, at: position)
  }
}

// The memory.
extension DeadlineHeap {
  private mutating func takePlace() -> Int32 {
    guard freePlace < 0 else {
      defer { freePlace = positions[Int(freePlace)] }
      return freePlace
    }
    placeCount += 1
    return placeCount - 1
  }

  private mutating func grow() {
    let grown = capacity + max(4, capacity / 4)
    precondition(grown <= Int(Int32.max), "\(grown) timers in one mode")
    DeadlineHeap.grow(&entries, from: capacity, to: grown)
    DeadlineHeap.grow(&positions, from: capacity, to: grown)
    DeadlineHeap.grow(&members, from: capacity, to: grown)
    capacity = grown
  }

  private static func grow<Element>(_ memory: inout UnsafeMutablePointer<Element>, from old: Int, to new: Int) {
    let grown = self.memory(of: Element.self, new)
    if old > 0 {
      grown.moveInitialize(from: memory, count: old)
      memory.deallocate()
    }
    memory = grown
  }

  /// Memory for so many elements; for none, an address that nobody uses.
  private static func memory<Element>(of type: Element.Type, _ capacity: Int) -> UnsafeMutablePointer<Element> {
    let nowhere = UnsafeMutablePointer<Element>(bitPattern: MemoryLayout<Element>.alignment).unsafelyUnwrapped
    return capacity == 0 ? nowhere : .allocate(capacity: capacity)
  }
}

extension DeadlineHeap {
  /// The members in no order.
  var unordered: [Member] { (0..<count).map { member(entries[$0]).takeUnretainedValue() } }

  /// The members in order.
  ///
  /// O(n log n).
  var sorted: [Member] {
    var all: ContiguousArray<Due> = []
    collect(dueAt: .never, into: &all)
    return all.compactMap(\.member)
  }

  /// The heap's rules, for tests: no child before its parent, and every member knows its place.
  func checkInvariants(place: (Member) -> Int32) {
    for position in 0..<count {
      let entry = entries[position]
      let known = place(member(entry).takeUnretainedValue())
      precondition(known == entry.place, "the member of the place \(entry.place) believes that it has \(known)")
      precondition(positions[Int(known)] == Int32(position), "the place \(known) is not at \(position)")
      precondition(
        position == 0 || isBefore(entries[(position - 1) / 4], entry), "entry \(position) is below a later one")
    }
  }
}
