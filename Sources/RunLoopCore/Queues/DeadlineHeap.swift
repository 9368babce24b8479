/// What a ``DeadlineHeap`` holds: it keeps for each heap where it stands.
protocol DeadlineHeapMember: AnyObject {
  /// Notes that the heap `kind` of the mode in `slot` now keeps this member at `position`, or not at all (−1).
  func setPosition(_ position: Int32, slot: Int32, kind: DeadlineHeapKind)
}

enum DeadlineHeapKind: Sendable {
  /// By deadline.
  case due
  /// By deadline and tolerance: how long the loop may sleep.
  case latest
}

/// A four-ary heap by deadline and, among equals, by insertion.
///
/// The keys lie inline, so that sifting touches no member but to tell it its new place. Insertion, removal and moving are
/// O(log n), the top is O(1), and nothing allocates but growth.
struct DeadlineHeap<Member: DeadlineHeapMember> {
  struct Entry {
    var tick: Tick
    var insertion: UInt64
    /// The heap owns one reference, from ``insert(_:slot:tick:insertion:)`` to ``remove(at:)``.
    ///
    /// Sifting counts none.
    let member: Unmanaged<Member>
    let slot: Int32

    @inline(__always)
    static func < (left: Entry, right: Entry) -> Bool {
      left.tick != right.tick ? left.tick < right.tick : left.insertion < right.insertion
    }
  }

  /// A due entry, and where the heap has it.
  struct Due {
    let entry: Entry
    let member: Member
    fileprivate let position: Int
  }

  let kind: DeadlineHeapKind
  private(set) var entries: ContiguousArray<Entry> = []

  init(kind: DeadlineHeapKind) {
    self.kind = kind
  }

  var count: Int { entries.count }
  var isEmpty: Bool { entries.isEmpty }
  /// The earliest tick, or ``Tick/never``.
  var firstTick: Tick { entries.first?.tick ?? .never }

  mutating func insert(_ member: Member, slot: Int32, tick: Tick, insertion: UInt64) {
    entries.append(Entry(tick: tick, insertion: insertion, member: .passRetained(member), slot: slot))
    siftUp(from: entries.count - 1)
  }

  /// Removes the entry at `position`.
  ///
  /// The caller holds a reference of its own to the member.
  mutating func remove(at position: Int) {
    let removed = entries[position]
    removed.leave(kind)
    let last = entries.removeLast()
    if position < entries.count {
      entries[position] = last
      restore(at: position)
    }
    removed.member.release()
  }

  /// Gives the entry at `position` another key.
  mutating func move(at position: Int, to tick: Tick, insertion: UInt64) {
    entries[position].tick = tick
    entries[position].insertion = insertion
    restore(at: position)
  }

  /// Removes every entry and gives its memory back.
  ///
  /// The caller holds references of its own to the members.
  mutating func removeAll() {
    for entry in entries {
      entry.leave(kind)
      entry.member.release()
    }
    entries = []
  }

  /// Appends to `due` every entry whose tick is at most `now`, in order.
  ///
  /// O(due · log due).
  func collect(dueAt now: Tick, into due: inout ContiguousArray<Due>) {
    guard let first = entries.first, first.tick <= now else { return }
    // The due entries are a subtree at the top, and `due` is the list of those whose children are yet to be looked at.
    let start = due.count
    due.append(Due(entry: first, member: first.member.takeUnretainedValue(), position: 0))
    var index = start
    var isOrdered = true
    while index < due.count {
      let children = 4 * due[index].position + 1
      for child in children..<max(children, min(children + 4, entries.count)) where entries[child].tick <= now {
        let entry = entries[child]
        if entry < due[due.count - 1].entry { isOrdered = false }
        due.append(Due(entry: entry, member: entry.member.takeUnretainedValue(), position: child))
      }
      index += 1
    }
    guard !isOrdered else { return }
    due.withUnsafeMutableBufferPointer { buffer in
      var tail = UnsafeMutableBufferPointer(rebasing: buffer[start...])
      tail.sort { $0.entry < $1.entry }
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
    var position = start
    let entry = entries[position]
    while position > 0 {
      let parent = (position - 1) / 4
      guard entry < entries[parent] else { break }
      place(entries[parent], at: position)
      position = parent
    }
    place(entry, at: position)
  }

  private mutating func siftDown(from start: Int) {
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
      place(entries[least], at: position)
      position = least
    }
    place(entry, at: position)
  }

  @inline(__always)
  private mutating func place(_ entry: Entry, at position: Int) {
    entries[position] = entry
    entry.member._withUnsafeGuaranteedRef {
      $0.setPosition(Int32(truncatingIfNeeded: position), slot: entry.slot, kind: kind)
    }
  }
}

extension DeadlineHeap.Entry {
  fileprivate func leave(_ kind: DeadlineHeapKind) {
    member._withUnsafeGuaranteedRef { $0.setPosition(-1, slot: slot, kind: kind) }
  }
}

extension DeadlineHeap {
  /// The heap's rules, for tests: no child before its parent, and every member knows its place.
  func checkInvariants(position: (Member, Int32) -> Int32) {
    for index in entries.indices {
      let entry = entries[index]
      let known = position(entry.member.takeUnretainedValue(), entry.slot)
      precondition(known == Int32(index), "a member at \(index) believes that it is at \(known)")
      if index > 0 { precondition(!(entry < entries[(index - 1) / 4]), "entry \(index) stands below a later one") }
    }
  }
}
