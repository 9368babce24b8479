// SPDX-License-Identifier: Apache-2.0

/// The modes that a timer is in and its places in their heaps; the first is stored inline, as most timers are in one
/// mode.
///
/// Properties that few timers have are in a separate object, so that the others are small. The slots own that object by
/// an unmanaged reference, which copies do not count, and release it in ``end()``.
struct TimerSlots {
  struct Slot {
    /// The loop keeps its modes alive, and the timer keeps the loop alive while it is in the mode.
    private let unmanagedMode: Unmanaged<ModeState>?
    /// The timer's turn among timers with the same date.
    var insertion: UInt64
    /// The places last stored by the mode's heaps: the timer is there or above.
    var duePlace: Int32 = -1
    var latestPlace: Int32 = -1

    init(_ mode: ModeState? = nil, insertion: UInt64 = 0) {
      unmanagedMode = mode.map(Unmanaged.passUnretained)
      self.insertion = insertion
    }

    var mode: ModeState? { unmanagedMode?.takeUnretainedValue() }
    var isEmpty: Bool { unmanagedMode == nil }

    /// Calls a closure with the mode, without retaining it.
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

  /// The properties that few timers have.
  final class Rare {
    // The lock that guards the timer guards these too.

    @exclusivity(unchecked) fileprivate(set) var others: ContiguousArray<Slot> = []
    /// The date as it was set, if it had already passed.
    @exclusivity(unchecked) var setTick: Tick?
    /// The current date by the wall clock: as it was set, or as it was first read.
    @exclusivity(unchecked) var knownWallDate: Double?
    /// The nanoseconds by which the loop may be late.
    @exclusivity(unchecked) var tolerance: Int64 = 0
    /// The interval in seconds as it was given, if it is not a whole number of nanoseconds.
    @exclusivity(unchecked) var timeInterval: Double?
    /// The value attached when the timer was made.
    @exclusivity(unchecked) var attachment: (any Sendable)?

    func takeAttachment() -> (any Sendable)? { attachment.take() }
  }

  /// The slot of the first mode; empty only if the timer is in no mode.
  private(set) var first = Slot()
  private var unmanagedRare: Unmanaged<Rare>?

  var isEmpty: Bool { first.isEmpty }

  /// The rare properties, or nil if the timer has none.
  @inline(__always)
  var rare: Rare? { unmanagedRare?.takeUnretainedValue() }

  /// Returns the rare properties, and makes the object if there is none.
  mutating func makeRare() -> Rare {
    if let rare { return rare }
    let made = Rare()
    unmanagedRare = .passRetained(made)
    return made
  }

  /// Releases the rare properties; called once, at the end of the timer.
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
    // Inlined as well: otherwise the closure's captures would be retained, even if it is never called.
    guard let rare else { return }
    // By index: the body may store new places, and iterating over the array would cause a copy.
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

  /// Assigns each slot a new turn and calls `body` with its mode and a copy of it; `body` may change the places.
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
