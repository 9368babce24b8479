// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// One mode of one loop: its items, which of them are ready, and the blocks that wait for it.
///
/// A mode lives as long as its loop.
final class ModeState: @unchecked Sendable {
  let name: RunLoop.Mode

  // Guarded by the loop's table lock.

  @exclusivity(unchecked) private(set) var sources: [ObjectIdentifier: Membership<RunLoop.Source>] = [:]
  @exclusivity(unchecked) private(set) var ports: [ObjectIdentifier: Membership<Port>] = [:]
  @exclusivity(unchecked) private(set) var descriptors: [ObjectIdentifier: Membership<RunLoop.DescriptorSource>] = [:]
  @exclusivity(unchecked) private var observerTable = ObserverTable<RunLoop.Observer>()
  @exclusivity(unchecked) var timers: TimerQueue
  /// Whether the mode has the source of the hand-offs.
  @exclusivity(unchecked) private(set) var hasHandOffSource = false
  @exclusivity(unchecked) var signalled = ReadyList<RunLoop.Source>()
  @exclusivity(unchecked) var readyPorts = ReadyList<Port>()
  /// The epoll set, as long as something is watched.
  @exclusivity(unchecked) var pollSet: PollSet? {
    didSet { isWatching.store(pollSet != nil, ordering: .releasing) }
  }

  // For any thread. Changed under the table lock; read without it by the loop's thread, which looks again under the
  // lock before it sleeps.
  //
  // Relaxed: each is a hint that stands for itself, which the lock orders, and the loop goes by what it finds under the
  // lock. Only the versions and sets that lead to other memory are released and acquired.

  /// How many sources, ports and timers keep the mode alive.
  let itemCount = Atomic<Int>(0)
  let isCommon = Atomic<Bool>(false)
  let isStopped = Atomic<Bool>(false)
  /// Whether the main dispatch queue is served in this mode, and so keeps it alive.
  let servesMainQueue = Atomic<Bool>(false)
  let isWatching = Atomic<Bool>(false)
  private let timerTotal = Atomic<Int>(0)
  let mayHaveSignalled = Atomic<Bool>(false)
  let mayHaveReadyPorts = Atomic<Bool>(false)
  private let observerVersion = Atomic<Int>(0)

  // The loop's thread only.

  @exclusivity(unchecked) var blocks = BlockQueue()
  /// The work that was handed over for this mode, and the place of the first of it in the order of all signals.
  @exclusivity(unchecked) var handOffs = BlockQueue()
  @exclusivity(unchecked) var handOffSignal: UInt64 = 0
  @exclusivity(unchecked) var hasTakenHandOffs = false
  /// The hand-offs' ``RunLoop/Source/lastTurn``.
  @exclusivity(unchecked) var lastTurnOfHandOffs: UInt64 = 0
  /// Whether the mode's epoll set has another library's loop of the same thread in it.
  @exclusivity(unchecked) var watchesOtherLoop = false
  @exclusivity(unchecked) private var listedVersion = -1
  /// The index of the name in the records, if it is there.
  @exclusivity(unchecked) var knownFaceIndex: Int32 = -1
  @exclusivity(unchecked) private var listedActivities: RunLoop.Activity = []
  /// The mode is one of the holders.
  @exclusivity(unchecked) private var lists: Unmanaged<ObserverLists>?

  init(_ name: RunLoop.Mode) {
    self.name = name
    // Until it has an identity.
    timers = TimerQueue(of: ObjectIdentifier(ModeState.self))
    timers = TimerQueue(of: ObjectIdentifier(self))
  }

  deinit { if let lists { ObserverLists.letGo(lists) } }

  /// The address of the mode, for an atomic that refers to it.
  ///
  /// The loop keeps its modes alive.
  var address: UInt { UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque()) }

  static func at(_ address: UInt) -> ModeState? {
    guard let pointer = UnsafeRawPointer(bitPattern: address) else { return nil }
    return Unmanaged<ModeState>.fromOpaque(pointer).takeUnretainedValue()
  }
}

// Adding and removing items, under the loop's table lock.
extension ModeState {
  @inline(__always)
  private func countItems(_ change: Int) {
    // Nobody else changes it meanwhile.
    itemCount.store(itemCount.load(ordering: .relaxed) &+ change, ordering: .relaxed)
  }

  /// How many timers are in the mode; can be used from any thread.
  @inline(__always)
  var timerCount: Int { timerTotal.load(ordering: .relaxed) }

  func insert(_ membership: Membership<RunLoop.Source>, isSignalled: Bool) {
    sources[ObjectIdentifier(membership.item)] = membership
    countItems(1)
    if isSignalled { enqueue(membership) }
  }

  func removeSource(_ source: RunLoop.Source) -> Membership<RunLoop.Source>? {
    guard let membership = sources.removeValue(forKey: ObjectIdentifier(source)) else { return nil }
    membership.isActive = false
    signalled.remove(membership)
    countItems(-1)
    return membership
  }

  func enqueue(_ membership: Membership<RunLoop.Source>) {
    signalled.enqueue(membership)
    mayHaveSignalled.store(true, ordering: .relaxed)
  }

  /// Adds the source that performs hand-offs to the mode, which is not empty from now on.
  func insertHandOffSource() {
    guard !hasHandOffSource else { return }
    hasHandOffSource = true
    countItems(1)
  }

  func insert(_ membership: Membership<Port>, isReady: Bool) {
    ports[ObjectIdentifier(membership.item)] = membership
    countItems(1)
    if isReady { enqueue(membership) }
  }

  func removePort(_ port: Port) -> Membership<Port>? {
    guard let membership = ports.removeValue(forKey: ObjectIdentifier(port)) else { return nil }
    membership.isActive = false
    readyPorts.remove(membership)
    countItems(-1)
    return membership
  }

  func enqueue(_ membership: Membership<Port>) {
    readyPorts.enqueue(membership)
    mayHaveReadyPorts.store(true, ordering: .relaxed)
  }

  func insert(_ membership: Membership<RunLoop.DescriptorSource>, in set: PollSet) throws(SystemError) {
    defer { if set.isEmpty { pollSet = nil } }
    try set.insert(membership)
    descriptors[ObjectIdentifier(membership.item)] = membership
    countItems(1)
  }

  func removeDescriptorSource(_ source: RunLoop.DescriptorSource) -> Membership<RunLoop.DescriptorSource>? {
    guard let membership = descriptors.removeValue(forKey: ObjectIdentifier(source)) else { return nil }
    membership.isActive = false
    countItems(-1)
    pollSet?.remove(membership)
    if let pollSet, pollSet.isEmpty { self.pollSet = nil }
    return membership
  }

  @inline(__always)
  func insert(_ timer: Timer) {
    countItems(1)
    timerTotal.store(timerCount &+ 1, ordering: .relaxed)
    if timer.usableTolerance > 0 { timers.countTolerant(1) }
    timers.insert(timer)
  }

  @inline(__always)
  func remove(_ timer: Timer) {
    timers.remove(timer)
    if timer.usableTolerance > 0 { timers.countTolerant(-1) }
    timerTotal.store(timerCount &- 1, ordering: .relaxed)
    countItems(-1)
  }

  func insert(_ observer: RunLoop.Observer) {
    observerTable.insert(observer)
    observerVersion.wrappingAdd(1, ordering: .releasing)
  }

  func remove(_ observer: RunLoop.Observer) {
    observerTable.remove(observer)
    observerVersion.wrappingAdd(1, ordering: .releasing)
  }

  /// The observers of the mode, by ascending order and as they were added.
  ///
  /// - Complexity: O(n log n).
  var observers: ContiguousArray<RunLoop.Observer> { ObserverTable.ordered(observerTable.entries) }
}

// The lists of observers that the loop's thread reads without a lock.
extension ModeState {
  /// Whether there may be observers of one stage.
  @inline(__always)
  func mayHaveObservers(of activity: RunLoop.Activity) -> Bool {
    listedActivities.contains(activity) || observerVersion.load(ordering: .acquiring) != listedVersion
  }

  /// The current lists; nil if there is no observer of a stage.
  @inline(__always)
  func observers(of activity: RunLoop.Activity, of loop: RunLoop) -> Unmanaged<ObserverLists>? {
    if observerVersion.load(ordering: .acquiring) != listedVersion { listObservers(of: loop) }
    return listedActivities.contains(activity) ? lists : nil
  }

  /// Makes every stage be looked at again, because a trace hook was set or removed; called under the table's lock.
  func noteHook() { observerVersion.wrappingAdd(1, ordering: .releasing) }

  @inline(never)
  private func listObservers(of loop: RunLoop) {
    let (entries, isHooked) = loop.table.withLock { _ in
      listedVersion = observerVersion.load(ordering: .relaxed)
      return (observerTable.entries, loop.isHooked)
    }
    defer { if isHooked { listedActivities = RunLoop.Activity(RunLoop.Activity.stages) } }
    guard !entries.isEmpty else { return replaceLists(with: nil) }
    // Put in order outside the lock, because other threads may wait for it.
    let made = ObserverLists(ObserverTable.ordered(entries))
    // Observers that were removed are released once the new lists are in place: their release may run any code.
    replaceLists(with: made.activities.isEmpty ? nil : made)
  }

  /// Releases the listed observers; the lists are made again when they are next needed.
  func dropObserverLists() {
    listedVersion = -1
    replaceLists(with: nil)
  }

  private func replaceLists(with made: ObserverLists?) {
    let released = lists
    lists = made.map(ObserverLists.held)
    listedActivities = made?.activities ?? []
    if let released { ObserverLists.letGo(released) }
  }
}
