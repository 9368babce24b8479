/// What a ``DeadlineHeap`` holds: it keeps for each heap where it stands, and what its key is now.
protocol DeadlineHeapMember: AnyObject {
  /// Notes that the heap `kind` of `owner` now keeps this member at `position`, or not at all (−1).
  func setPosition(_ position: Int32, in owner: ObjectIdentifier, kind: DeadlineHeapKind)
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
  var insertion: UInt64

  @inline(__always)
  static func < (left: DeadlineKey, right: DeadlineKey) -> Bool {
    left.tick != right.tick ? left.tick < right.tick : left.insertion < right.insertion
  }
}

/// A four-ary heap by deadline and, among equals, by insertion.
///
/// The keys lie inline, so that sifting touches no member but to tell it its new place. A member whose key has become later
/// need not be moved at once: its entry stays where it is, under its old key, and sinks when it comes to the top, before
/// anybody sees it there. So no entry's key is later than its member's. Insertion, removal and moving are O(log n), the top is
/// O(1) but for the entries that sink, each once for all the times that it was moved, and nothing allocates but growth.
struct DeadlineHeap<Member: DeadlineHeapMember> {
  struct Entry {
    var key: DeadlineKey
    /// The heap owns one reference, from ``insert(_:)`` to ``remove(at:)``.
    ///
    /// Sifting counts none.
    let member: Unmanaged<Member>

    @inline(__always)
    static func < (left: Entry, right: Entry) -> Bool { left.key < right.key }
  }

  /// A due member, its key, and where the heap has it.
  struct Due {
    let key: DeadlineKey
    let member: Member
    fileprivate let position: Int32
  }

  let kind: DeadlineHeapKind
  /// Whose heap it is: a member may be in several.
  private let owner: ObjectIdentifier
  private(set) var entries: ContiguousArray<Entry> = []

  init(kind: DeadlineHeapKind, owner: ObjectIdentifier) {
    self.kind = kind
    self.owner = owner
  }

  var count: Int { entries.count }
  var isEmpty: Bool { entries.isEmpty }
  /// The earliest tick, or ``Tick/never``.
  var firstTick: Tick {
    mutating get { first?.key.tick ?? .never }
  }
  /// The entry with the earliest key.
  var first: Entry? {
    mutating get {
      settle()
      return entries.first
    }
  }

  mutating func insert(_ member: Member) {
    entries.append(Entry(key: member.key(in: owner, kind: kind), member: .passRetained(member)))
    siftUp(from: entries.count - 1)
  }

  /// Removes the entry at `position`.
  ///
  /// The caller holds a reference of its own to the member.
  mutating func remove(at position: Int) {
    let removed = entries[position]
    tell(removed, -1)
    let last = entries.removeLast()
    if position < entries.count {
      entries[position] = last
      restore(at: position)
    }
    removed.member.release()
  }

  /// Takes notice of the key that the member at `position` has now.
  mutating func move(at position: Int) {
    let key = keyNow(entries[position])
    // Later: it sinks when it comes to the top.
    guard key < entries[position].key else { return }
    entries[position].key = key
    siftUp(from: position)
  }

  /// Removes every entry and gives its memory back.
  ///
  /// The caller holds references of its own to the members.
  mutating func removeAll() {
    for entry in entries {
      tell(entry, -1)
      entry.member.release()
    }
    entries = []
  }

  /// Appends to `due` every member whose tick is at most `now`, in order.
  ///
  /// O(due · log due), and O(m) in the members whose former tick is.
  mutating func collect(dueAt now: Tick, into due: inout ContiguousArray<Due>) {
    guard let first, first.key.tick <= now else { return }
    let start = due.count
    due.append(self.due(first, 0))
    // The entries with due keys are a subtree at the top. Those whose children are yet to be looked at are a list, and of
    // those, only what has moved to a later date is not due itself.
    var isOrdered = true
    var index = start
    var later = ContiguousArray<Int32>()
    func visit(_ heap: borrowing Self, below position: Int32) {
      let children = 4 * Int(position) + 1
      for child in children..<max(children, min(children + 4, heap.entries.count))
      where heap.entries[child].key.tick <= now {
        let found = heap.due(heap.entries[child], Int32(truncatingIfNeeded: child))
        guard found.key.tick <= now else {
          later.append(found.position)
          continue
        }
        if found.key < due[due.count - 1].key { isOrdered = false }
        due.append(found)
      }
    }
    while true {
      if index < due.count {
        visit(self, below: due[index].position)
        index += 1
      } else if let position = later.popLast() {
        visit(self, below: position)
      } else {
        break
      }
    }
    guard !isOrdered else { return }
    due.withUnsafeMutableBufferPointer { buffer in
      var tail = UnsafeMutableBufferPointer(rebasing: buffer[start...])
      tail.sort { $0.key < $1.key }
    }
  }

  private func due(_ entry: Entry, _ position: Int32) -> Due {
    Due(key: keyNow(entry), member: entry.member.takeUnretainedValue(), position: position)
  }

  @inline(__always)
  private func keyNow(_ entry: Entry) -> DeadlineKey {
    entry.member._withUnsafeGuaranteedRef { $0.key(in: owner, kind: kind) }
  }

  @inline(__always)
  private func tell(_ entry: Entry, _ position: Int) { entry.tell(position, owner, kind) }

  /// Lets what stands at the top under a former key sink, until what stands there is the first.
  @inline(__always)
  private mutating func settle() {
    while let top = entries.first {
      let key = keyNow(top)
      guard top.key != key else { return }
      entries[0].key = key
      siftDown(from: 0)
    }
  }

  private mutating func restore(at position: Int) {
    if position > 0, entries[position] < entries[(position - 1) / 4] {
      siftUp(from: position)
    } else {
      siftDown(from: position)
    }
  }

  private mutating func siftUp(from start: Int) {
    entries.withUnsafeMutableBufferPointer { [owner, kind] entries in
      var position = start
      let entry = entries[position]
      while position > 0 {
        let parent = (position - 1) / 4
        guard entry < entries[parent] else { break }
        entries[position] = entries[parent]
        entries[position].tell(position, owner, kind)
        position = parent
      }
      entries[position] = entry
      entry.tell(position, owner, kind)
    }
  }

  private mutating func siftDown(from start: Int) {
    entries.withUnsafeMutableBufferPointer { [owner, kind] entries in
      var position = start
      let entry = entries[position]
      while true {
        let children = 4 * position + 1
        guard children < entries.count else { break }
        var least = children
        for child in children + 1..<max(children + 1, min(children + 4, entries.count))
        where entries[child] < entries[least] {
          least = child
        }
        guard entries[least] < entry else { break }
        entries[position] = entries[least]
        entries[position].tell(position, owner, kind)
        position = least
      }
      entries[position] = entry
      entry.tell(position, owner, kind)
    }
  }
}

extension DeadlineHeap.Entry {
  @inline(__always)
  fileprivate func tell(_ position: Int, _ owner: ObjectIdentifier, _ kind: DeadlineHeapKind) {
    member._withUnsafeGuaranteedRef {
      $0.setPosition(Int32(truncatingIfNeeded: position), in: owner, kind: kind)
    }
  }
}

extension DeadlineHeap {
  /// The members by their keys.
  ///
  /// O(n log n).
  var sorted: [Member] {
    entries.map { (keyNow($0), $0.member) }.sorted { $0.0 < $1.0 }.map { $0.1.takeUnretainedValue() }
  }

  /// The heap's rules, for tests: no child before its parent, no entry later than its member, and every member knows its
  /// place.
  func checkInvariants(position: (Member) -> Int32) {
    for index in entries.indices {
      let entry = entries[index]
      let known = position(entry.member.takeUnretainedValue())
      precondition(known == Int32(index), "a member at \(index) believes that it is at \(known)")
      precondition(!(keyNow(entry) < entry.key), "entry \(index) is later than its member")
      if index > 0 { precondition(!(entry < entries[(index - 1) / 4]), "entry \(index) stands below a later one") }
    }
  }
}
