// SPDX-License-Identifier: Apache-2.0

/// The timers of one mode, ordered by when they are due and, while one of them has a tolerance, by how long they can
/// wait.
///
/// A timer that is being called stands in neither heap. Guarded by the loop's table lock, as are the timers in it.
struct TimerQueue: ~Copyable {
  private(set) var due: DeadlineHeap<Timer>
  private(set) var latest: DeadlineHeap<Timer>
  /// The timers that are being called, the innermost last, with a reference to each.
  private var firing: ContiguousArray<Unmanaged<Timer>> = []
  /// The timers of the mode that have a tolerance, also those that are being called.
  private var tolerantCount = 0
  private let mode: ObjectIdentifier

  init(of mode: ObjectIdentifier) {
    self.mode = mode
    due = DeadlineHeap(kind: .due, owner: mode)
    latest = DeadlineHeap(kind: .latest, owner: mode)
  }

  deinit { for timer in firing { timer.release() } }

  /// All timers of the mode, those that are being called first, then by their dates; O(n log n).
  var all: [Timer] { firing.map { $0.takeUnretainedValue() } + due.sorted }
  /// Whether the second heap is in use.
  var hasTolerance: Bool { tolerantCount > 0 }
  /// When the first timer is due.
  var firstTick: Tick { due.firstTick }
  /// The first timer, also one that is being called.
  var first: Timer? {
    var first = due.first
    for timer in firing.lazy.map({ $0.takeUnretainedValue() }) {
      if let first, (first.tick, first.turn(in: mode)) < (timer.tick, timer.turn(in: mode)) { continue }
      first = timer
    }
    return first
  }
  /// The date, as it was set, of the first timer.
  var firstDeadline: Tick? { first?.setTick }
  /// How long the loop may sleep.
  var wakeTick: Tick { hasTolerance ? latest.firstTick : due.firstTick }

  /// Takes a timer in, whose slot has its turn.
  @inline(__always)
  mutating func insert(_ timer: Timer) {
    guard !timer.isFiring else { return firing.append(.passRetained(timer)) }
    due.insert(timer, at: timer.tick)
    if hasTolerance { latest.insert(timer, at: timer.latestTick) }
  }

  @inline(__always)
  mutating func remove(_ timer: Timer) {
    guard let slot = timer.slots[mode] else { return }
    // By its place, not by whether it fires: whoever ends a timer may come to this when its call has just ended.
    if slot.duePlace >= 0 { due.remove(timer, from: slot.duePlace) } else { removeFiring(timer) }
    if slot.latestPlace >= 0 { latest.remove(timer, from: slot.latestPlace) }
  }

  /// Takes a timer out of the heaps while it is being called.
  mutating func beginFiring(_ timer: Timer) {
    guard let slot = timer.slots[mode] else { return }
    firing.append(due.take(timer, from: slot.duePlace))
    if slot.latestPlace >= 0 { latest.remove(timer, from: slot.latestPlace) }
  }

  /// Puts a timer that has been called back into the heaps.
  mutating func endFiring(_ timer: Timer) {
    removeFiring(timer)
    insert(timer)
  }

  /// Gives a timer, which stands in the heap, the position of its present date and turn.
  @inline(__always)
  mutating func move(_ timer: Timer, by slot: TimerSlots.Slot) {
    due.move(timer, from: slot.duePlace, to: timer.tick)
    if slot.latestPlace >= 0 { latest.move(timer, from: slot.latestPlace, to: timer.latestTick) }
  }

  @inline(never)
  private mutating func removeFiring(_ timer: Timer) {
    let held = Unmanaged.passUnretained(timer).toOpaque()
    if let index = firing.lastIndex(where: { $0.toOpaque() == held }) { firing.remove(at: index).release() }
  }

  /// Gives a timer whose tolerance has changed its place in the second heap.
  mutating func moveLatest(_ timer: Timer) {
    guard let slot = timer.slots[mode], slot.latestPlace >= 0 else { return }
    latest.move(timer, from: slot.latestPlace, to: timer.latestTick)
  }

  /// Appends the timers that are due to a list, in order, with references of its own.
  mutating func collect(dueAt now: Tick, into list: inout ContiguousArray<DeadlineHeap<Timer>.Due>) {
    due.collect(dueAt: now, into: &list)
  }

  /// Notes that a timer of the mode has gained a tolerance, or has lost it or left with it.
  mutating func countTolerant(_ change: Int) {
    tolerantCount += change
    precondition(tolerantCount >= 0, "\(tolerantCount) tolerant timers")
    if tolerantCount == 0, !latest.isEmpty {
      latest.removeAll()
    } else if tolerantCount > 0, latest.isEmpty {
      for timer in due.unordered { latest.insert(timer, at: timer.latestTick) }
    }
  }

  /// The queue's rules, for tests.
  func checkInvariants() {
    due.checkInvariants { $0.slots[mode]?.duePlace ?? -2 }
    latest.checkInvariants { $0.slots[mode]?.latestPlace ?? -2 }
    precondition(latest.count == (hasTolerance ? due.count : 0), "\(latest.count) of \(due.count) in the second heap")
    precondition(due.unordered.allSatisfy { !$0.isFiring }, "a timer waits that fires")
    precondition(
      firing.allSatisfy { $0.takeUnretainedValue().slots[mode]?.duePlace == -1 },
      "a timer fires that waits, or has left")
  }
}
