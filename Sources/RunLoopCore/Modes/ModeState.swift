// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The state of one mode of one loop: its items, the ready ones among them, and the blocks queued for it.
///
/// A mode lives as long as its loop.
final class ModeState: @unchecked Sendable {
  // Sendable: the comment above each group of variables states what guards it.

  let name: RunLoop.Mode

  // Guarded by the loop's table lock.

  @exclusivity(unchecked) private(set) var sources: [ObjectIdentifier: Membership<RunLoop.Source>] = [:]
  @exclusivity(unchecked) private(set) var ports: [ObjectIdentifier: Membership<Port>] = [:]
  @exclusivity(unchecked) private(set) var descriptors: [ObjectIdentifier: Membership<RunLoop.DescriptorSource>] = [:]
  @exclusivity(unchecked) private var observerTable = ObserverTable<RunLoop.Observer>()
  @exclusivity(unchecked) var timers: TimerQueue
  @exclusivity(unchecked) private(set) var hasHandOffSource = false
  @exclusivity(unchecked) var signalled = ReadyList<RunLoop.Source>()
  @exclusivity(unchecked) var readyPorts = ReadyList<Port>()
  /// The epoll set, or `nil` if the mode watches no descriptor.
  @exclusivity(unchecked) var pollSet: PollSet? {
    didSet { isWatching.store(pollSet != nil, ordering: .releasing) }
  }

  // Used from any thread. These change with the table lock held. The loop's thread also reads them without the lock,
  // and checks again with the lock held before it sleeps.
  //
  // Relaxed ordering suffices for the values that are hints. Those that lead to other memory, such as the versions and
  // the epoll set, use release and acquire ordering.

  /// The number of sources, ports and timers that keep the mode alive.
  let itemCount = Atomic<Int>(0)
  let isCommon = Atomic<Bool>(false)
  let isStopped = Atomic<Bool>(false)
  /// Whether the main dispatch queue is served in this mode and therefore keeps it alive.
  let servesMainQueue = Atomic<Bool>(false)
  let isWatching = Atomic<Bool>(false)
  private let timerTotal = Atomic<Int>(0)
  let mayHaveSignalled = Atomic<Bool>(false)
  let mayHaveReadyPorts = Atomic<Bool>(false)
  private let observerVersion = Atomic<Int>(0)

  // Used only on the loop's thread.

  @exclusivity(unchecked) var blocks = BlockQueue()
  /// The hand-offs for this mode, and the position of the first one in the order of all signals.
  @exclusivity(unchecked) var handOffs = BlockQueue()
  @exclusivity(unchecked) var handOffSignal: UInt64 = 0
  @exclusivity(unchecked) var hasTakenHandOffs = false
  /// The hand-off source's counterpart of ``RunLoop/Source/lastTurn``.
  @exclusivity(unchecked) var lastTurnOfHandOffs: UInt64 = 0
  /// Whether the mode's epoll set contains another library's loop of the same thread.
  @exclusivity(unchecked) var watchesOtherLoop = false
  @exclusivity(unchecked) private var listedVersion = -1
  /// The index of the mode's name in the records, or -1 if it has none.
  @exclusivity(unchecked) var knownFaceIndex: Int32 = -1
  @exclusivity(unchecked) private var listedActivities: RunLoop.Activity = []
  /// The current lists, which count the mode as one of their holders.
  @exclusivity(unchecked) private var lists: Unmanaged<ObserverLists>?

  init(_ name: RunLoop.Mode) {
    self.name = name
    // A placeholder until `self` has an identity.
    timers = TimerQueue(of: ObjectIdentifier(ModeState.self))
    timers = TimerQueue(of: ObjectIdentifier(self))
  }

  deinit { if let lists { ObserverLists.letGo(lists) } }

  /// The address of the mode, for use in an atomic that refers to it.
  ///
  /// The loop keeps its modes alive.
  var address: UInt { UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque()) }

  static func at(_ address: UInt) -> ModeState? {
    guard let pointer = UnsafeRawPointer(bitPattern: address) else { return nil }
    return Unmanaged<ModeState>.fromOpaque(pointer).takeUnretainedValue()
  }
}

// Adding and removing items. These require the loop's table lock.
extension ModeState {
  @inline(__always)
  private func countItems(_ change: Int) {
    // The lock excludes concurrent changes, so a load and a store suffice.
    itemCount.store(itemCount.load(ordering: .relaxed) &+ change, ordering: .relaxed)
  }

  /// The number of timers in the mode (thread-safe).
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

  /// Adds the hand-off source to the mode, so that the mode is no longer empty.
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

  /// The mode's observers in ascending order; those of equal order are in insertion order.
  ///
  /// - Complexity: O(n log n)
  var observers: ContiguousArray<RunLoop.Observer> { ObserverTable.ordered(observerTable.entries) }
}

// The observer lists, which the loop's thread reads without a lock.
extension ModeState {
  @inline(__always)
  func mayHaveObservers(of activity: RunLoop.Activity) -> Bool {
    listedActivities.contains(activity) || observerVersion.load(ordering: .acquiring) != listedVersion
  }

  /// The current lists, or `nil` if the activity has no observer.
  @inline(__always)
  func observers(of activity: RunLoop.Activity, of loop: RunLoop) -> Unmanaged<ObserverLists>? {
    if observerVersion.load(ordering: .acquiring) != listedVersion { listObservers(of: loop) }
    return listedActivities.contains(activity) ? lists : nil
  }

  /// Forces the lists to be rebuilt because a trace hook was set or removed; requires the table's lock.
  func noteHook() { observerVersion.wrappingAdd(1, ordering: .releasing) }

  @inline(never)
  private func listObservers(of loop: RunLoop) {
    let (entries, isHooked) = loop.table.withLock { _ in
      listedVersion = observerVersion.load(ordering: .relaxed)
      return (observerTable.entries, loop.isHooked)
    }
    defer { if isHooked { listedActivities = RunLoop.Activity(RunLoop.Activity.stages) } }
    guard !entries.isEmpty else { return replaceLists(with: nil) }
    // Sorted without the lock because other threads may wait for it.
    let made = ObserverLists(ObserverTable.ordered(entries))
    // Removed observers are released after the new lists are in place, because their release may run arbitrary code.
    replaceLists(with: made.activities.isEmpty ? nil : made)
  }

  /// Releases the listed observers; the lists are rebuilt when next needed.
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
