// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A loop's modes by name, the common modes, and the items that all common modes share.
///
/// Guarded by the loop's table lock.
struct ModeTable {
  /// An item that was added to the common modes, with its position among these items.
  struct CommonItem {
    let item: any ModeItem
    let sequence: UInt64
  }

  private(set) var modes: [RunLoop.Mode: ModeState] = [:]
  /// The mode last looked up, which is usually the next one too; hashing its name would dominate the cost of a lookup.
  private var lastMode: Unmanaged<ModeState>?
  /// The common modes in the order in which they were made common.
  ///
  /// A name can be listed here before its mode exists.
  private(set) var commonNames: [RunLoop.Mode] = [.default]
  private(set) var commonItems: [ObjectIdentifier: CommonItem] = [:]
  private var lastCommonItem: UInt64 = 0
  /// The ports that were added, whether they entered the modes themselves or added sources of their own.
  private(set) var addedPorts: [ObjectIdentifier: AddedPort] = [:]
  /// Whether work was handed over for the common modes, so that every current and future common mode has the hand-off
  /// source.
  private var hasCommonHandOffSource = false
  /// Whether the loop's thread has ended, so that nothing can be added.
  private(set) var isDead = false

  /// The mode in which the loop last announced a sleep, and the end of that sleep.
  var sleepingMode: ModeState? {
    get { unmanagedSleepingMode?.takeUnretainedValue() }
    set { unmanagedSleepingMode = newValue.map(Unmanaged.passUnretained) }
  }
  /// Unretained because the loop keeps its modes alive.
  fileprivate var unmanagedSleepingMode: Unmanaged<ModeState>?
  var sleepDeadline = Tick.distantPast
  /// The epoll set in which the loop's thread waits.
  var waitingIn: PollSet?
  /// The gate that another loop watches while it waits on behalf of this one.
  var waitingAt: (any SleepGate)?
  /// The wake-up counter, which is in all of the loop's epoll sets.
  let bell: WakeBell
  /// The other library's loop in which the loop's thread waits.
  var host: (any RunLoopHost)?
  /// Returns the handle of the main dispatch queue, which the main loop watches in its common modes.
  private let mainQueueHandle: MainQueue.Handle?
  /// Whether a host serves the main dispatch queue instead.
  private var isMainQueueElsewhere = false

  init(mainQueueHandle: MainQueue.Handle?, bell: WakeBell) {
    self.mainQueueHandle = mainQueueHandle
    self.bell = bell
    _ = mode(.default)
  }

  /// The existing common modes, in the order in which they were made common.
  var commonModes: [ModeState] { commonNames.compactMap { modes[$0] } }

  /// The common items in the order in which they were added.
  var orderedCommonItems: [any ModeItem] {
    commonItems.values.sorted { $0.sequence < $1.sequence }.map(\.item)
  }

  /// Returns the mode with a name if it exists; code that holds the lock need not retain it.
  @inline(__always)
  mutating func madeMode(_ name: RunLoop.Mode) -> Unmanaged<ModeState>? {
    if let lastMode, lastMode._withUnsafeGuaranteedRef({ $0.name == name }) { return lastMode }
    return findMode(name)
  }

  @inline(never)
  private mutating func findMode(_ name: RunLoop.Mode) -> Unmanaged<ModeState>? {
    guard let mode = modes[name] else { return nil }
    lastMode = .passUnretained(mode)
    return lastMode
  }

  /// Returns the mode with a name, and creates it if necessary.
  ///
  /// The common pseudo-mode is never created.
  mutating func mode(_ name: RunLoop.Mode) -> ModeState {
    if let mode = madeMode(name) { return mode.takeUnretainedValue() }
    precondition(name != .common, "\(name) stands for modes and is none")
    let mode = ModeState(name)
    modes[name] = mode
    if commonNames.contains(name) {
      mode.isCommon.store(true, ordering: .relaxed)
      if hasCommonHandOffSource { mode.insertHandOffSource() }
      // If this fails, the mode's next run tries again and reports the failure.
      try? serveMainQueue(in: mode)
    }
    return mode
  }

  /// Makes a mode common, or throws without any change; returns `false` if the mode was already common.
  mutating func makeCommon(_ name: RunLoop.Mode) throws(SystemError) -> Bool {
    guard !commonNames.contains(name) else { return false }
    if let mode = modes[name] {
      try serveMainQueue(in: mode)
      mode.isCommon.store(true, ordering: .relaxed)
    }
    commonNames.append(name)
    if hasCommonHandOffSource { self.mode(name).insertHandOffSource() }
    return true
  }

  /// Makes the main loop serve the main dispatch queue in a common mode.
  mutating func serveMainQueue(in mode: ModeState) throws(SystemError) {
    guard let mainQueueHandle, !isMainQueueElsewhere, !mode.servesMainQueue.load(ordering: .relaxed) else { return }
    let handle = try mainQueueHandle()
    let set = try pollSet(of: mode)
    defer { if set.isEmpty { mode.pollSet = nil } }
    try set.watchMainQueue(handle)
    mode.servesMainQueue.store(true, ordering: .relaxed)
  }

  /// Leaves the main dispatch queue to a host.
  mutating func giveUpMainQueue() {
    isMainQueueElsewhere = true
    for mode in modes.values where mode.servesMainQueue.exchange(false, ordering: .relaxed) {
      mode.pollSet?.forgetMainQueue()
      if let set = mode.pollSet, set.isEmpty { mode.pollSet = nil }
    }
  }

  /// Serves the main dispatch queue again, or returns the error, after which the next run of the mode tries again.
  mutating func takeBackMainQueue() -> SystemError? {
    isMainQueueElsewhere = false
    var failure: SystemError?
    for mode in commonModes {
      do throws(SystemError) { try serveMainQueue(in: mode) } catch { failure = error }
    }
    return failure
  }

  /// Returns the epoll set of a mode, and creates it if there is none.
  mutating func pollSet(of mode: ModeState) throws(SystemError) -> PollSet {
    if let set = mode.pollSet { return set }
    let set = try PollSet(wakeDescriptor: try bell.counter())
    mode.pollSet = set
    return set
  }

  /// Adds the hand-off source to every current and future common mode.
  mutating func insertCommonHandOffSource() {
    hasCommonHandOffSource = true
    for name in commonNames { mode(name).insertHandOffSource() }
  }

  mutating func insertCommon(_ item: any ModeItem) {
    guard commonItems[ObjectIdentifier(item)] == nil else { return }
    lastCommonItem += 1
    commonItems[ObjectIdentifier(item)] = CommonItem(item: item, sequence: lastCommonItem)
  }

  mutating func removeCommon(_ item: any ModeItem) -> Bool {
    commonItems.removeValue(forKey: ObjectIdentifier(item)) != nil
  }

  /// Notes that a port was added to a mode, and returns `false` if it had been added before.
  mutating func insertAdded(_ port: Port, _ name: RunLoop.Mode) -> Bool {
    addedPorts[ObjectIdentifier(port), default: AddedPort(port: port)].modes.insert(name).inserted
  }

  /// Notes that a port was removed from a mode, and returns `false` if it had not been added.
  mutating func removeAdded(_ port: Port, _ name: RunLoop.Mode) -> Bool {
    guard addedPorts[ObjectIdentifier(port)]?.modes.remove(name) != nil else { return false }
    addedPorts[ObjectIdentifier(port)]?.modesOfSources.remove(name)
    if addedPorts[ObjectIdentifier(port)]?.modes.isEmpty ?? false { addedPorts[ObjectIdentifier(port)] = nil }
    return true
  }

  /// Notes that a port added to a mode has added sources of its own instead of entering the mode.
  mutating func noteSources(of port: Port, _ name: RunLoop.Mode) {
    guard addedPorts[ObjectIdentifier(port)]?.modes.contains(name) ?? false else { return }
    addedPorts[ObjectIdentifier(port)]?.modesOfSources.insert(name)
  }

  /// Returns whether a port added to a mode has added sources of its own instead.
  func comesWithSources(_ port: Port, _ name: RunLoop.Mode) -> Bool {
    addedPorts[ObjectIdentifier(port)]?.modesOfSources.contains(name) ?? false
  }

  /// Forgets all modes to which a port was added, and returns `false` if there were none.
  mutating func removeAdded(_ port: Port) -> Bool { addedPorts.removeValue(forKey: ObjectIdentifier(port)) != nil }

  mutating func die() { isDead = true }
}

/// A loop's mode table with the lock that guards it.
final class GuardedModeTable: @unchecked Sendable {
  // Sendable: the lock guards the table.
  private let lock = Lock()
  /// The table, for code that holds the lock through ``locked(_:)``.
  @exclusivity(unchecked) var underLock: ModeTable
  private let generation = ForkGeneration.current
  /// The default mode, which every loop has from the start.
  let defaultMode: ModeState

  init(mainQueueHandle: MainQueue.Handle? = nil, bell: WakeBell = WakeBell()) {
    var table = ModeTable(mainQueueHandle: mainQueueHandle, bell: bell)
    defaultMode = table.mode(.default)
    self.underLock = table
  }

  /// Whether the loop is asleep and would sleep past a timer.
  ///
  /// Requires this table's lock, which also guards the timer.
  @inline(__always)
  func sleepsTooLong(for timer: Timer, in mode: ModeState) -> Bool {
    // Accesses single fields, because reading `underLock` as a whole would copy the table.
    underLock.unmanagedSleepingMode?.toOpaque() == Unmanaged.passUnretained(mode).toOpaque()
      && timer.latestTick < underLock.sleepDeadline
  }

  /// Traps in a forked child that uses a loop of its parent.
  @inline(__always)
  func checkFork() { generation.check() }

  /// Whether the loop belongs to the process from which this one was forked.
  var isOfParent: Bool { generation.isPast }

  /// Runs a closure with the lock held, in which it can access the table through ``underLock``.
  @inline(__always)
  func locked<Result>(_ body: () -> Result) -> Result {
    checkFork()
    lock.lock()
    defer { lock.unlock() }
    return body()
  }

  @inline(__always)
  func withLock<Result, Failure: Error>(
    _ body: (inout ModeTable) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    checkFork()
    lock.lock()
    defer { lock.unlock() }
    return try body(&underLock)
  }
}
