// SPDX-License-Identifier: Apache-2.0

/// What a ``DeadlineHeap`` holds: it keeps for each heap by which place that knows it, and what its key is now.
protocol DeadlineHeapMember: AnyObject {
  /// Notes that the heap `kind` of `owner` knows this member by `place`, or not at all (−1).
  func setPlace(_ place: Int32, in owner: ObjectIdentifier, kind: DeadlineHeapKind)
  /// The key by which the heap `kind` of `owner` is to have this member.
  func key(in owner: ObjectIdentifier, kind: DeadlineHeapKind) -> DeadlineKey
}

enum DeadlineHeapKind: Sendable {
  /// By deadline.
  case due
  /// By deadline and tolerance: how long the loop may sleep.
  case latest
}

/// A date, and the turn among those of the same date.
struct DeadlineKey: Comparable {
  var tick: Tick
  /// At least one; who was inserted or moved later has a greater one.
  var insertion: UInt64

  @inline(__always)
  static func < (left: DeadlineKey, right: DeadlineKey) -> Bool {
    left.tick != right.tick ? left.tick < right.tick : left.insertion < right.insertion
  }
}

/// A four-ary heap by deadline and, among equals, by insertion.
///
/// What moves when an entry sifts lies close together: its tick and, in a table beside, its position. The members, which are
/// as many cache lines all over memory, are not touched: each knows its place in that table, which it keeps. Only where two
/// ticks are the same are the members asked for their turns.
///
/// A member whose key has become later need not be moved at once: its entry stays under its old tick, before all of the same,
/// and sinks when it comes to the top, before anybody sees it there. So no entry's tick is later than its member's. Insertion,
/// removal and moving are O(log n), the top is O(1) but for the entries that sink, each once for all the times that it was
/// moved, and nothing allocates but growth.
struct DeadlineHeap<Member: DeadlineHeapMember>: ~Copyable {
  struct Entry {
    var tick: Tick
    let place: Int32
  }

  /// A due member and its key.
  struct Due {
    let key: DeadlineKey
    /// Nil once it was taken.
    private(set) var member: Member?
    /// Whether it is being called.
    var isCalled = false
    fileprivate let position: Int32

    fileprivate init(key: DeadlineKey, member: Member, position: Int32) {
      self.key = key
      self.member = member
      self.position = position
    }

    /// Hands the reference over.
    mutating func take() -> Member? {
      defer { member = nil }
      return member
    }
  }

  let kind: DeadlineHeapKind
  /// Whose heap it is: a member may be in several.
  private let owner: ObjectIdentifier
  private(set) var count = 0
  private var capacity = 0
  private var entries = DeadlineHeap.memory(of: Entry.self, 0)
  /// By place: where the entry stands; of a free place, the next free one.
  private var positions = DeadlineHeap.memory(of: Int32.self, 0)
  /// By place: the member, to which the heap owns one reference from ``insert(_:)`` to ``remove(_:)``.
  private var members = DeadlineHeap.memory(of: Unmanaged<Member>.self, 0)
  private var freePlace: Int32 = -1
  /// How many places have been in use.
  private var placeCount: Int32 = 0

  init(kind: DeadlineHeapKind, owner: ObjectIdentifier) {
    self.kind = kind
    self.owner = owner
  }

  deinit {
    for position in 0..<count { members[Int(entries[position].place)].release() }
    guard capacity > 0 else { return }
    entries.deallocate()
    positions.deallocate()
    members.deallocate()
  }

  var isEmpty: Bool { count == 0 }
  /// The earliest tick, or ``Tick/never``.
  var firstTick: Tick {
    mutating get {
      settle()
      return count == 0 ? .never : entries[0].tick
    }
  }
  /// The member with the earliest key.
  var first: Unmanaged<Member>? {
    mutating get {
      settle()
      return count == 0 ? nil : member(entries[0])
    }
  }

  mutating func insert(_ member: Member) {
    if count == capacity { grow() }
    let place = takePlace()
    members[Int(place)] = .passRetained(member)
    member.setPlace(place, in: owner, kind: kind)
    entries[count] = Entry(tick: member.key(in: owner, kind: kind).tick, place: place)
    count += 1
    siftUp(from: count - 1)
  }

  /// Removes the member that has a place.
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
      entries[position] = entries[count]
      restore(at: position)
    }
    removed.release()
  }

  /// Takes notice of the key that the member of a place has now.
  @inline(__always)
  mutating func move(_ place: Int32) {
    let position = position(of: place)
    let tick = keyNow(entries[position]).tick
    if tick == entries[position].tick { return restore(at: position) }
    // Later: it sinks when it comes to the top, and is now the first of its old tick.
    if tick < entries[position].tick { entries[position].tick = tick }
    if position > 0, entries[position].tick <= entries[(position - 1) / 4].tick { siftUp(from: position) }
  }

  /// Removes every member and gives the memory back.
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
  /// O(due · log due), and O(m) in the members whose former tick is.
  mutating func collect(dueAt now: Tick, into due: inout ContiguousArray<Due>) {
    guard firstTick <= now, count > 0 else { return }
    let start = due.count
    // The entries with due ticks are a subtree at the top, which is gone through level by level: so they come nearly in
    // order. Whose children are yet to be looked at stands in the list itself, but for what has moved to a later date.
    var isOrdered = true
    var index = start
    var later = ContiguousArray<Int32>()
    take(0)
    while true {
      if index < due.count {
        visit(below: due[index].position)
        index += 1
      } else if let position = later.popLast() {
        visit(below: position)
      } else {
        break
      }
    }

    func take(_ position: Int) {
      let found = self.due(position)
      guard found.key.tick <= now else { return later.append(found.position) }
      if due.count > start, found.key < due[due.count - 1].key { isOrdered = false }
      due.append(found)
    }
    func visit(below position: Int32) {
      let children = 4 * Int(position) + 1
      for child in children..<max(children, min(children + 4, count)) where entries[child].tick <= now { take(child) }
    }

    guard !isOrdered else { return }
    due.withUnsafeMutableBufferPointer { buffer in
      var tail = UnsafeMutableBufferPointer(rebasing: buffer[start...])
      tail.sort { $0.key < $1.key }
    }
  }

  private func due(_ position: Int) -> Due {
    let entry = entries[position]
    return Due(
      key: keyNow(entry), member: member(entry).takeUnretainedValue(),
      position: Int32(truncatingIfNeeded: position))
  }

  @inline(__always)
  private func member(_ entry: Entry) -> Unmanaged<Member> { members[Int(entry.place)] }

  @inline(__always)
  private func keyNow(_ entry: Entry) -> DeadlineKey {
    member(entry)._withUnsafeGuaranteedRef { $0.key(in: owner, kind: kind) }
  }

  /// Where the entry of a place stands.
  func position(of place: Int32) -> Int {
    precondition(place >= 0 && place < placeCount, "there is no place \(place)")
    let position = Int(positions[Int(place)])
    precondition(
      position >= 0 && position < count && entries[position].place == place, "no member has the place \(place)")
    return position
  }
}

// The order.
extension DeadlineHeap {
  /// Whether an entry comes before another.
  @inline(__always)
  private func isBefore(_ left: Entry, _ right: Entry) -> Bool {
    left.tick != right.tick ? left.tick < right.tick : turn(left) < turn(right)
  }

  /// The turn among those of the same tick: first what only waits to sink.
  @inline(never)
  private func turn(_ entry: Entry) -> UInt64 {
    let key = keyNow(entry)
    return key.tick == entry.tick ? key.insertion : 0
  }

  /// Lets what stands at the top under a former tick sink, until what stands there is the first.
  @inline(__always)
  private mutating func settle() {
    while count > 0 {
      let tick = keyNow(entries[0]).tick
      guard entries[0].tick != tick else { return }
      entries[0].tick = tick
      siftDown(from: 0)
    }
  }

  private mutating func restore(at position: Int) {
    if position > 0, isBefore(entries[position], entries[(position - 1) / 4]) {
      siftUp(from: position)
    } else {
      siftDown(from: position)
    }
  }

  @inline(__always)
  private mutating func put(_ entry: Entry, at position: Int) {
    entries[position] = entry
    positions[Int(entry.place)] = Int32(truncatingIfNeeded: position)
  }

  private mutating func siftUp(from start: Int) {
    var position = start
    let entry = entries[position]
    while position > 0 {
      let parent = (position - 1) / 4
      guard isBefore(entry, entries[parent]) else { break }
      put(entries[parent], at: position)
      position = parent
    }
    put(entry, at: position)
  }

  private mutating func siftDown(from start: Int) {
    var position = start
    let entry = entries[position]
    while true {
      let children = 4 * position + 1
      guard children < count else { break }
      var least = children
      for child in children + 1..<max(children + 1, min(children + 4, count))
      where isBefore(entries[child], entries[least]) {
        least = child
      }
      guard isBefore(entries[least], entry) else { break }
      put(entries[least], at: position)
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
    let grown = max(4, capacity + capacity / 2)
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

  /// The members by their keys.
  ///
  /// O(n log n).
  var sorted: [Member] {
    (0..<count).map { due($0) }.sorted { $0.key < $1.key }.compactMap(\.member)
  }

  /// The heap's rules, for tests: no child before its parent, no entry later than its member, and every member knows its
  /// place.
  func checkInvariants(place: (Member) -> Int32) {
    for position in 0..<count {
      let entry = entries[position]
      let known = place(member(entry).takeUnretainedValue())
      precondition(known == entry.place, "a member of the place \(entry.place) believes that it has \(known)")
      precondition(positions[Int(known)] == Int32(position), "the place \(known) is not at \(position)")
      precondition(entry.tick <= keyNow(entry).tick, "entry \(position) is later than its member")
      if position > 0 {
        precondition(!isBefore(entry, entries[(position - 1) / 4]), "entry \(position) stands below a later one")
      }
    }
  }
}
