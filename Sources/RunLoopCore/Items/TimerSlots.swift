// SPDX-License-Identifier: Apache-2.0

/// The modes that a timer is in and its places in their heaps: the first inline, as most timers are in one mode.
///
/// What few timers have lies in an object of its own, so that the others are small. The slots own it, but not by a
/// reference that is counted with every copy: who lets the slots go ends them.
struct TimerSlots {
  struct Slot {
    /// The mode's loop keeps it alive, and the timer that loop, as long as the timer is in the mode.
    private let unmanagedMode: Unmanaged<ModeState>?
    /// The timer's turn among those of the same date.
    var insertion: UInt64
    /// The places in the mode's heaps that the timer was told: it stands there or above.
    var duePlace: Int32 = -1
    var latestPlace: Int32 = -1

    init(_ mode: ModeState? = nil, insertion: UInt64 = 0) {
      unmanagedMode = mode.map(Unmanaged.passUnretained)
      self.insertion = insertion
    }

    var mode: ModeState? { unmanagedMode?.takeUnretainedValue() }
    var isEmpty: Bool { unmanagedMode == nil }

    /// Does something with the mode, which nobody need retain for it.
    @inline(__always)
    func withMode(_ body: (ModeState) -> Void) { unmanagedMode?._withUnsafeGuaranteedRef(body) }

    @inline(__always)
    func isOf(_ mode: ObjectIdentifier) -> Bool {
      UInt(bitPattern: unmanagedMode?.toOpaque()) == UInt(bitPattern: mode)
    }

    @inline(__always)
    fileprivate mutating func setPlace(_ place: Int32, _ kind: DeadlineHeapKind) {
      if kind == .due { duePlace = place } else { latestPlace = place }
    }
  }

  /// What few timers have.
  final class Rare {
    // Guarded as the timer is.

    @exclusivity(unchecked) fileprivate(set) var others: ContiguousArray<Slot> = []
    /// The date as it was set, if it had passed then.
    @exclusivity(unchecked) var setTick: Tick?
    /// The present date by the wall clock: as it was set, or as it was when somebody first asked.
    @exclusivity(unchecked) var knownWallDate: Double?
    /// The nanoseconds by which the loop may be late.
    @exclusivity(unchecked) var tolerance: Int64 = 0
    /// Seconds between two dates, as they were given, if nanoseconds do not say them.
    @exclusivity(unchecked) var timeInterval: Double?
    /// What its maker has attached to the timer.
    @exclusivity(unchecked) var attachment: (any Sendable)?

    func takeAttachment() -> (any Sendable)? { attachment.take() }
  }

  /// The first mode's slot; empty only if all are.
  private(set) var first = Slot()
  private var unmanagedRare: Unmanaged<Rare>?

  var isEmpty: Bool { first.isEmpty }

  /// The rare parts, if there are any.
  @inline(__always)
  var rare: Rare? { unmanagedRare?.takeUnretainedValue() }

  /// The rare parts, made if there are none.
  mutating func makeRare() -> Rare {
    if let rare { return rare }
    let made = Rare()
    unmanagedRare = .passRetained(made)
    return made
  }

  /// Releases the rare parts.
  ///
  /// Once, when nobody uses the slots any more.
  func end() { unmanagedRare?.release() }

  var modes: ShortList<ModeState> {
    var modes = ShortList<ModeState>()
    forEachMode { modes.append($0) }
    return modes
  }

  @inline(__always)
  func forEachMode(_ body: (ModeState) -> Void) {
    guard !isEmpty else { return }
    first.withMode(body)
    // Inlined too: for a closure that is not, what it captures is retained, even if it is never called.
    guard let rare else { return }
    // By index: the body may note new places, for which an array that somebody goes through would be copied.
    for index in rare.others.indices {
      let slot = rare.others[index]
      slot.withMode(body)
    }
  }

  /// The slot of a mode; nil if the timer is not in it.
  @inline(__always)
  subscript(mode: ModeState) -> Slot? { self[ObjectIdentifier(mode)] }

  /// The slot of a mode; nil if the timer is not in it.
  @inline(__always)
  subscript(mode: ObjectIdentifier) -> Slot? {
    if first.isOf(mode) { return first }
    return unmanagedRare == nil ? nil : otherSlot(of: mode)
  }

  @inline(never)
  private func otherSlot(of mode: ObjectIdentifier) -> Slot? { rare?.others.first { $0.isOf(mode) } }

  @inline(__always)
  mutating func insert(_ mode: ModeState, insertion: UInt64) {
    let slot = Slot(mode, insertion: insertion)
    if isEmpty { first = slot } else { makeRare().others.append(slot) }
  }

  @inline(__always)
  mutating func remove(_ mode: ModeState) {
    let mode = ObjectIdentifier(mode)
    guard unmanagedRare == nil else { return removeOneOfSeveral(mode) }
    if first.isOf(mode) { first = Slot() }
  }

  @inline(never)
  private mutating func removeOneOfSeveral(_ mode: ObjectIdentifier) {
    if first.isOf(mode) {
      first = rare?.others.popLast() ?? Slot()
    } else if let rare, let index = rare.others.firstIndex(where: { $0.isOf(mode) }) {
      rare.others.remove(at: index)
    }
  }

  /// Gives each slot another turn, and does something with the mode and the slot, whose places may change meanwhile.
  @inline(__always)
  mutating func renew(turn next: () -> UInt64, _ body: (ModeState, Slot) -> Void) {
    guard !isEmpty else { return }
    first.insertion = next()
    let slot = first
    slot.withMode { body($0, slot) }
    guard let rare else { return }
    for index in rare.others.indices {
      rare.others[index].insertion = next()
      let slot = rare.others[index]
      slot.withMode { body($0, slot) }
    }
  }

  @inline(__always)
  mutating func setPlace(_ place: Int32, in mode: ObjectIdentifier, kind: DeadlineHeapKind) {
    if first.isOf(mode) { first.setPlace(place, kind) } else { setOtherPlace(place, in: mode, kind: kind) }
  }

  @inline(never)
  private func setOtherPlace(_ place: Int32, in mode: ObjectIdentifier, kind: DeadlineHeapKind) {
    guard let rare, let index = rare.others.firstIndex(where: { $0.isOf(mode) }) else { return }
    rare.others[index].setPlace(place, kind)
  }
}
