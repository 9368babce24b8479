/// The modes that a timer is in and its places in their heaps: the first inline, as most timers are in one mode.
///
/// A slot keeps its number as long as the timer is in its mode, because the heaps' entries carry it.
struct TimerSlots {
  struct Slot {
    var mode: ModeState?
    var duePosition: Int32 = -1
    var latestPosition: Int32 = -1

    func position(_ kind: DeadlineHeapKind) -> Int32 { kind == .due ? duePosition : latestPosition }
  }

  private var first = Slot()
  private var others: ContiguousArray<Slot> = []
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }
  /// One more than the largest slot number in use.
  var end: Int32 { Int32(1 + others.count) }

  subscript(slot: Int32) -> Slot { slot == 0 ? first : others[Int(slot) - 1] }

  var modes: ShortList<ModeState> {
    var modes = ShortList<ModeState>()
    for slot in 0..<end { if let mode = self[slot].mode { modes.append(mode) } }
    return modes
  }

  func index(of mode: ModeState) -> Int32? {
    if first.mode === mode { return 0 }
    return others.firstIndex { $0.mode === mode }.map { Int32($0 + 1) }
  }

  mutating func insert(_ mode: ModeState) -> Int32 {
    count += 1
    if first.mode == nil {
      first.mode = mode
      return 0
    }
    if let free = others.firstIndex(where: { $0.mode == nil }) {
      others[free].mode = mode
      return Int32(free + 1)
    }
    others.append(Slot(mode: mode))
    return Int32(others.count)
  }

  mutating func remove(_ slot: Int32) {
    count -= 1
    if slot == 0 { first = Slot() } else { others[Int(slot) - 1] = Slot() }
    if first.mode == nil, count == 0 { others = [] }
  }

  @inline(__always)
  mutating func setPosition(_ position: Int32, slot: Int32, kind: DeadlineHeapKind) {
    switch (kind, slot) {
    case (.due, 0): first.duePosition = position
    case (.latest, 0): first.latestPosition = position
    case (.due, _): others[Int(slot) - 1].duePosition = position
    case (.latest, _): others[Int(slot) - 1].latestPosition = position
    }
  }
}
