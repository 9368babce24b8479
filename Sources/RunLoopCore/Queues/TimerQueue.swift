/// The timers of one mode, ordered by when they are due and, while one of them has a tolerance, by how long they can wait.
///
/// A timer that is being called stands in neither heap. Guarded by the loop's table lock.
struct TimerQueue {
  /// A timer that is being called, and its turn among those of the same date.
  private struct Firing {
    let timer: Timer
    let insertion: UInt64
  }

  private(set) var due = DeadlineHeap<Timer>(kind: .due)
  private(set) var latest = DeadlineHeap<Timer>(kind: .latest)
  /// The timers that are being called, the innermost last.
  private var firing: ContiguousArray<Firing> = []
  /// All timers of the mode, those that are being called first, then by their dates.
  ///
  /// O(n log n).
  var all: [Timer] { firing.map(\.timer) + due.entries.sorted(by: <).map { $0.member.takeUnretainedValue() } }
  /// The timers of the mode that have a tolerance, also those that are being called.
  private var tolerantCount = 0

  /// Whether the second heap is in use.
  var hasTolerance: Bool { tolerantCount > 0 }
  /// When the first timer is due.
  var firstTick: Tick { due.firstTick }
  /// The first timer, also one that is being called.
  var first: Timer? {
    var first = due.entries.first.map { ($0.member.takeUnretainedValue(), $0.insertion) }
    for entry in firing {
      if let (timer, insertion) = first, (timer.tick, insertion) < (entry.timer.tick, entry.insertion) { continue }
      first = (entry.timer, entry.insertion)
    }
    return first?.0
  }
  /// The date, as it was set, of the first timer.
  var firstDeadline: Tick? { first?.setTick }
  /// How long the loop may sleep.
  var wakeTick: Tick { hasTolerance ? latest.firstTick : due.firstTick }

  mutating func insert(_ timer: Timer, slot: Int32, insertion: UInt64) {
    guard !timer.isFiring else { return firing.append(Firing(timer: timer, insertion: insertion)) }
    due.insert(timer, slot: slot, tick: timer.tick, insertion: insertion)
    if hasTolerance { latest.insert(timer, slot: slot, tick: timer.latestTick, insertion: insertion) }
  }

  mutating func remove(_ timer: Timer, slot: Int32) {
    removeFiring(timer)
    let places = timer.slots[slot]
    if places.duePosition >= 0 { due.remove(at: Int(places.duePosition)) }
    if places.latestPosition >= 0 { latest.remove(at: Int(places.latestPosition)) }
  }

  /// Takes a timer out of the heaps while it is being called.
  mutating func beginFiring(_ timer: Timer, slot: Int32) {
    let insertion = due.entries[Int(timer.slots[slot].duePosition)].insertion
    remove(timer, slot: slot)
    firing.append(Firing(timer: timer, insertion: insertion))
  }

  /// Gives a timer the place of its present date, or, while it is being called, its turn there.
  ///
  /// One that has been called comes back into the heaps. Without a number it keeps the turn that it was given meanwhile.
  mutating func move(_ timer: Timer, slot: Int32, insertion: UInt64?) {
    let places = timer.slots[slot]
    if places.duePosition >= 0, let insertion {
      due.move(at: Int(places.duePosition), to: timer.tick, insertion: insertion)
      if places.latestPosition >= 0 {
        latest.move(at: Int(places.latestPosition), to: timer.latestTick, insertion: insertion)
      }
    } else if let turn = removeFiring(timer) {
      insert(timer, slot: slot, insertion: insertion ?? turn)
    }
  }

  /// Forgets that a timer is being called; its turn among those of the same date, if it was.
  @discardableResult
  private mutating func removeFiring(_ timer: Timer) -> UInt64? {
    guard let index = firing.lastIndex(where: { $0.timer === timer }) else { return nil }
    return firing.remove(at: index).insertion
  }

  /// Gives a timer whose tolerance has changed its place in the second heap.
  mutating func moveLatest(_ timer: Timer, slot: Int32) {
    let position = timer.slots[slot].latestPosition
    guard position >= 0 else { return }
    latest.move(at: Int(position), to: timer.latestTick, insertion: latest.entries[Int(position)].insertion)
  }

  /// Notes that a timer of the mode has gained a tolerance, or has lost it or left with it.
  mutating func countTolerant(_ change: Int) {
    tolerantCount += change
    precondition(tolerantCount >= 0, "\(tolerantCount) tolerant timers")
    if tolerantCount == 0, !latest.isEmpty {
      latest.removeAll()
    } else if tolerantCount > 0, latest.isEmpty {
      for entry in due.entries {
        let timer = entry.member.takeUnretainedValue()
        latest.insert(timer, slot: entry.slot, tick: timer.latestTick, insertion: entry.insertion)
      }
    }
  }

  /// The queue's rules, for tests.
  func checkInvariants() {
    due.checkInvariants { $0.slots[$1].duePosition }
    latest.checkInvariants { $0.slots[$1].latestPosition }
    precondition(latest.count == (hasTolerance ? due.count : 0), "\(latest.count) of \(due.count) in the second heap")
    for entry in due.entries {
      let timer = entry.member.takeUnretainedValue()
      precondition(entry.tick == timer.tick && !timer.isFiring, "a timer stands at another date, or fires")
    }
  }
}
