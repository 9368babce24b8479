// SPDX-License-Identifier: Apache-2.0

/// The timers of one mode, ordered by their dates and, while any has a tolerance, by how long they can wait.
///
/// A timer is in neither heap while it fires. The loop's table lock guards the queue and its timers.
struct TimerQueue: ~Copyable {
  private(set) var due: DeadlineHeap<Timer>
  private(set) var latest: DeadlineHeap<Timer>
  /// The timers that are firing, the innermost last; the array owns a reference to each.
  private var firing: ContiguousArray<Unmanaged<Timer>> = []
  /// The number of timers with a tolerance, including those that are firing.
  private var tolerantCount = 0
  private let mode: ObjectIdentifier

  init(of mode: ObjectIdentifier) {
    self.mode = mode
    due = DeadlineHeap(kind: .due, owner: mode)
    latest = DeadlineHeap(kind: .latest, owner: mode)
  }

  deinit { for timer in firing { timer.release() } }

  /// All timers of the mode: those that are firing, then the others by date.
  ///
  /// - Complexity: O(n log n).
  var all: [Timer] { firing.map { $0.takeUnretainedValue() } + due.sorted }
  /// Whether the second heap is in use.
  var hasTolerance: Bool { tolerantCount > 0 }
  /// The date of the first timer in the heap.
  var firstTick: Tick { due.firstTick }
  /// The first timer, which may be firing.
  var first: Timer? {
    var first = due.first
    for timer in firing.lazy.map({ $0.takeUnretainedValue() }) {
      if let first, (first.tick, first.turn(in: mode)) < (timer.tick, timer.turn(in: mode)) { continue }
      first = timer
    }
    return first
  }
  /// The date of the first timer as it was set.
  var firstDeadline: Tick? { first?.setTick }
  /// The date until which the loop may sleep.
  var wakeTick: Tick { hasTolerance ? latest.firstTick : due.firstTick }

  /// Inserts a timer whose slot already has its turn.
  @inline(__always)
  mutating func insert(_ timer: Timer) {
    guard !timer.isFiring else { return firing.append(.passRetained(timer)) }
    due.insert(timer, at: timer.tick)
    if hasTolerance { latest.insert(timer, at: timer.latestTick) }
  }

  @inline(__always)
  mutating func remove(_ timer: Timer) {
    guard let slot = timer.slots[mode] else { return }
    // The place decides, not `isFiring`: another thread may end the timer just after its call-out has returned.
    if slot.duePlace >= 0 { due.remove(timer, from: slot.duePlace) } else { removeFiring(timer) }
    if slot.latestPlace >= 0 { latest.remove(timer, from: slot.latestPlace) }
  }

  /// Moves a timer from the heaps to the firing timers.
  mutating func beginFiring(_ timer: Timer) {
    guard let slot = timer.slots[mode] else { return }
    firing.append(due.take(timer, from: slot.duePlace))
    if slot.latestPlace >= 0 { latest.remove(timer, from: slot.latestPlace) }
  }

  /// Puts a timer back into the heaps after its call-out.
  mutating func endFiring(_ timer: Timer) {
    removeFiring(timer)
    insert(timer)
  }

  /// Moves a timer of the heap to the place of its current date and turn.
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

  /// Moves a timer whose tolerance has changed to its place in the second heap.
  mutating func moveLatest(_ timer: Timer) {
    guard let slot = timer.slots[mode], slot.latestPlace >= 0 else { return }
    latest.move(timer, from: slot.latestPlace, to: timer.latestTick)
  }

  /// Appends the due timers to a list in order; the list owns a reference to each.
  mutating func collect(dueAt now: Tick, into list: inout ContiguousArray<DeadlineHeap<Timer>.Due>) {
    due.collect(dueAt: now, into: &list)
  }

  /// Counts a timer that has gained a tolerance, or that has lost it or left the mode with it.
  mutating func countTolerant(_ change: Int) {
    tolerantCount += change
    precondition(tolerantCount >= 0, "\(tolerantCount) tolerant timers")
    if tolerantCount == 0, !latest.isEmpty {
      latest.removeAll()
    } else if tolerantCount > 0, latest.isEmpty {
      for timer in due.unordered { latest.insert(timer, at: timer.latestTick) }
    }
  }

  /// Checks the invariants, for tests.
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
