// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSystemEvents

/// Holds a source weakly in a separate object, because reading a property of a structure with a weak reference copies
/// the whole structure, which is expensive; guarded by the item's lock.
private final class SourcePlace {
  @exclusivity(unchecked) weak var source: RunLoop.DescriptorSource?
}

/// The modes that an item is in, and the descriptor source that represents it there.
///
/// The loops retain the source, the source its handler, and the handler the item, while the item references the source
/// only weakly. A loop thus retains the items that were added to it, and an item that is in no loop ends with its last
/// other reference. Guarded by the item's lock.
struct Registrations {
  /// The reason why no loop serves the item until it is added to another one, or `nil` if a loop serves it.
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
  /// A second timer, independent of the first.
  var secondTimer: RegisteredTimer?
  typealias TimerPlace = any WritableKeyPath<Registrations, RegisteredTimer?> & Sendable

  /// Enters a mode of a loop with the source that is already in loops, or with a new one.
  ///
  /// No call-out is made, so the item's lock is held throughout, which serializes entering and leaving. The caller
  /// must release the source without the lock.
  mutating func enter(
    _ loop: RunLoop, _ mode: RunLoop.Mode, _ entering: RunLoop.DescriptorSource
  ) throws(RunLoopError) {
    try loop.add(entering, forMode: mode)
    // A new source means that the loops of the previous one have ended.
    if source !== entering { all = [] }
    source = entering
    insert(loop, mode)
  }

  /// Leaves a mode of a loop, and returns the source, which the caller must release without the lock.
  mutating func leave(_ loop: RunLoop, _ mode: RunLoop.Mode) -> RunLoop.DescriptorSource? {
    let present = source
    all.removeAll { $0.loop === loop && $0.mode == mode }
    let isLast = !all.contains { $0.loop === loop }
    timer?.leave(loop, mode, isLast: isLast)
    secondTimer?.leave(loop, mode, isLast: isLast)
    if let present { loop.remove(present, forMode: mode) }
    return present
  }

  /// Records a mode of a loop, and adds the timers to it.
  mutating func insert(_ loop: RunLoop, _ mode: RunLoop.Mode) {
    guard !contains(loop, mode) else { return }
    all.append((loop, mode))
    timer?.enter(loop, mode)
    secondTimer?.enter(loop, mode)
  }

  func contains(_ loop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
    all.contains { $0.loop === loop && $0.mode == mode }
  }

  var isHere: Bool { all.contains { $0.loop.isCurrent } }

  /// Removes the source and returns it, for the caller to invalidate it without the lock.
  mutating func removeAll() -> RunLoop.DescriptorSource? {
    defer {
      all = []
      source = nil
    }
    return source
  }

  /// Performs a block on the first loop of the item that has not ended, in all of the item's modes there, or returns
  /// false if there is no such loop.
  func perform(_ block: @escaping @Sendable () -> Void) -> Bool {
    for (index, place) in all.enumerated() where !all[..<index].contains(where: { $0.loop === place.loop }) {
      guard !place.loop.takesNoItems else { continue }
      let modes = all.filter { $0.loop === place.loop }.map(\.mode)
      if place.loop.perform(inModes: modes, block: block) { return true }
    }
    return false
  }

  /// Sets a timer for all current and future modes of the item, and returns the previous one, to be invalidated without
  /// the lock.
  @discardableResult
  mutating func replaceTimer(_ next: RegisteredTimer?, _ timer: TimerPlace = \.timer) -> RegisteredTimer? {
    let before = self[keyPath: timer]
    self[keyPath: timer] = next
    for place in all { self[keyPath: timer]?.enter(place.loop, place.mode) }
    return before
  }

  /// Returns the instant after a time, on the clock of the loop that the item entered first.
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
  /// Calls a closure on a loop that the item is in at that time.
  ///
  /// Returns false if the item is in no loop. Requires the lock. The closure is called without it.
  func post(_ body: @escaping @Sendable () -> Void) -> Bool {
    registrations.perform { [self] in
      lock.lock()
      let isHere = registrations.isHere
      // The item has left this loop. Post the closure to another one, if there is one.
      if !isHere { _ = post(body) }
      lock.unlock()
      if isHere { body() }
    }
  }
}
