// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents

/// Holds a source weakly, guarded by the item's lock.
///
/// In an object of its own: a structure with a weak reference is copied as a whole, and at some cost, where one of its
/// properties is read.
private final class SourcePlace {
  @exclusivity(unchecked) weak var source: RunLoop.DescriptorSource?
}

/// Where an item of ours is, and the descriptor source by which it is there.
///
/// The loops hold the source, the source its handler, and the handler the item; the item holds the source weakly. So a
/// loop holds what is in it, and what no loop and nobody else holds ends.
///
/// Guarded by the item's lock.
struct Registrations {
  /// Why no loop serves the item until it is added to another; nil if one does.
  var lack: WaitRejection? {
    if all.isEmpty { return .noLoop }
    return all.allSatisfy { $0.loop.takesNoItems } ? .loopsHaveEnded : nil
  }

  private let sourcePlace = SourcePlace()
  private(set) var source: RunLoop.DescriptorSource? {
    get { sourcePlace.source }
    nonmutating set { sourcePlace.source = newValue }
  }
  private(set) var all: [(loop: RunLoop, mode: RunLoop.Mode)] = []
  var timer: RegisteredTimer?
  /// Counts beside the other, and independently of it.
  var secondTimer: RegisteredTimer?
  typealias TimerPlace = any WritableKeyPath<Registrations, RegisteredTimer?> & Sendable

  /// Enters a mode of a loop with the source that is in loops, or with a new one.
  ///
  /// Nothing is called out meanwhile, so that the item's lock is held: who enters a place and who leaves it come one
  /// after the other. The caller releases the source outside the lock.
  mutating func enter(
    _ loop: RunLoop, _ mode: RunLoop.Mode, _ entering: RunLoop.DescriptorSource
  ) throws(RunLoopError) {
    try loop.add(entering, forMode: mode)
    // Else the loops that it was in have ended.
    if source !== entering { all = [] }
    source = entering
    insert(loop, mode)
  }

  /// Leaves a mode of a loop, and returns the source for it to be released outside the lock.
  mutating func leave(_ loop: RunLoop, _ mode: RunLoop.Mode) -> RunLoop.DescriptorSource? {
    let present = source
    all.removeAll { $0.loop === loop && $0.mode == mode }
    let isLast = !all.contains { $0.loop === loop }
    timer?.leave(loop, mode, isLast: isLast)
    secondTimer?.leave(loop, mode, isLast: isLast)
    if let present { loop.remove(present, forMode: mode) }
    return present
  }

  /// Notes a place that is entered later.
  mutating func insert(_ loop: RunLoop, _ mode: RunLoop.Mode) {
    guard !contains(loop, mode) else { return }
    all.append((loop, mode))
    timer?.enter(loop, mode)
    secondTimer?.enter(loop, mode)
  }

  func contains(_ loop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
    all.contains { $0.loop === loop && $0.mode == mode }
  }

  /// Whether the item is in a loop of the calling thread.
  var isHere: Bool { all.contains { $0.loop.isCurrent } }

  /// Gives up the source, for it to be invalidated outside the lock.
  mutating func removeAll() -> RunLoop.DescriptorSource? {
    defer {
      all = []
      source = nil
    }
    return source
  }

  /// Runs a block on the loop in which the item was first of those that go on, in all of its modes there; false if
  /// there is none.
  func perform(_ block: @escaping @Sendable () -> Void) -> Bool {
    for (index, place) in all.enumerated() where !all[..<index].contains(where: { $0.loop === place.loop }) {
      guard !place.loop.takesNoItems else { continue }
      let modes = all.filter { $0.loop === place.loop }.map(\.mode)
      if place.loop.perform(inModes: modes, block: block) { return true }
    }
    return false
  }

  /// Has a timer wherever the item is and will be, and returns the one before, to be ended outside the lock.
  @discardableResult
  mutating func replaceTimer(_ next: RegisteredTimer?, _ timer: TimerPlace = \.timer) -> RegisteredTimer? {
    let before = self[keyPath: timer]
    self[keyPath: timer] = next
    for place in all { self[keyPath: timer]?.enter(place.loop, place.mode) }
    return before
  }

  /// The instant after a time, on the clock of the loop that the item entered first.
  func instant(after time: Duration) -> SuspendingClock.Instant {
    all.first?.loop.instant(after: time) ?? Tick.after(time).instant
  }
}

/// An item whose lock guards its registrations.
protocol Registered: AnyObject, Sendable {
  var lock: ProcessLock { get }
  var registrations: Registrations { get }
}

extension BaseSocket: Registered {}
extension ByteStream: Registered {}

extension Registered {
  /// Calls a closure on a loop that the item is in by then; false if it is in none.
  ///
  /// Requires the lock, without which the closure is called.
  func post(_ body: @escaping @Sendable () -> Void) -> Bool {
    registrations.perform { [self] in
      lock.lock()
      let isHere = registrations.isHere
      // It has left: what is due is posted again when it is added to a loop.
      if !isHere { _ = post(body) }
      lock.unlock()
      if isHere { body() }
    }
  }
}
