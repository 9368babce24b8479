// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The modes of a loop by name, which of them are common, and the items that all common modes share.
///
/// A value behind the loop's table lock.
struct ModeTable {
  /// An item that was added to the common modes, and its position among these items.
  struct CommonItem {
    let item: any ModeItem
    let sequence: UInt64
  }

  private(set) var modes: [RunLoop.Mode: ModeState] = [:]
  /// The mode that was last looked up: usually it is the next one too, and hashing its name would take longer than
  /// everything else.
  private var lastMode: Unmanaged<ModeState>?
  /// The common modes in the order in which they were made common.
  ///
  /// A name can be here before its mode exists.
  private(set) var commonNames: [RunLoop.Mode] = [.default]
  private(set) var commonItems: [ObjectIdentifier: CommonItem] = [:]
  private var lastCommonItem: UInt64 = 0
  /// The ports that were added, whether they have put themselves or sources of their own into the modes.
  private(set) var addedPorts: [ObjectIdentifier: AddedPort] = [:]
  /// Whether work was handed over for the common modes: every mode that is or becomes common has the source for it.
  private var hasCommonHandOffSource = false
  /// The loop's thread has ended: nothing is added any more.
  private(set) var isDead = false

  /// The mode in which the loop last announced a sleep, and until when.
  var sleepingMode: ModeState? {
    get { unmanagedSleepingMode?.takeUnretainedValue() }
    set { unmanagedSleepingMode = newValue.map(Unmanaged.passUnretained) }
  }
  /// The loop keeps its modes alive.
  fileprivate var unmanagedSleepingMode: Unmanaged<ModeState>?
  var sleepDeadline = Tick.distantPast
  /// The set of descriptors that the loop's thread waits in.
  var waitingIn: PollSet?
  /// The gate that another loop watches for this one, while it waits.
  var waitingAt: (any SleepGate)?
  /// The counter that is in all sets of the loop.
  let bell: WakeBell
  /// The loop of another library in which the loop's thread waits.
  var host: (any RunLoopHost)?
  /// Where the handle of the main dispatch queue comes from, which the main loop watches in its common modes.
  private let mainQueueHandle: MainQueue.Handle?
  /// Whether a host serves the main dispatch queue.
  private var isMainQueueElsewhere = false

  init(mainQueueHandle: MainQueue.Handle?, bell: WakeBell) {
    self.mainQueueHandle = mainQueueHandle
    self.bell = bell
    _ = mode(.default)
  }

  /// The common modes that exist, in the order in which they were made common.
  var commonModes: [ModeState] { commonNames.compactMap { modes[$0] } }

  /// The common items in the order in which they were added.
  var orderedCommonItems: [any ModeItem] {
    commonItems.values.sorted { $0.sequence < $1.sequence }.map(\.item)
  }

  /// The mode of a name, if it exists; code under the lock need not retain it.
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

  /// The mode of a name; it is made if it does not exist.
  ///
  /// The common pseudo-mode is never made.
  mutating func mode(_ name: RunLoop.Mode) -> ModeState {
    if let mode = madeMode(name) { return mode.takeUnretainedValue() }
    precondition(name != .common, "\(name) stands for modes and is none")
    let mode = ModeState(name)
    modes[name] = mode
    if commonNames.contains(name) {
      mode.isCommon.store(true, ordering: .relaxed)
      if hasCommonHandOffSource { mode.insertHandOffSource() }
      // If this fails, the mode's next run tries again, and reports the failure.
      try? serveMainQueue(in: mode)
    }
    return mode
  }

  /// Makes a mode common, or throws and changes nothing; returns false if it already was.
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

  /// Lets the main loop serve the main dispatch queue in a common mode.
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

  /// Serves the main dispatch queue again, or returns the reason why not; then the next run of the mode tries again.
  mutating func takeBackMainQueue() -> SystemError? {
    isMainQueueElsewhere = false
    var failure: SystemError?
    for mode in commonModes {
      do throws(SystemError) { try serveMainQueue(in: mode) } catch { failure = error }
    }
    return failure
  }

  /// The epoll set of a mode; it is made if there is none.
  mutating func pollSet(of mode: ModeState) throws(SystemError) -> PollSet {
    if let set = mode.pollSet { return set }
    let set = try PollSet(wakeDescriptor: try bell.counter())
    mode.pollSet = set
    return set
  }

  /// Adds the source that performs hand-offs to every common mode, now and later.
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

  /// Notes that a port was added to a mode; returns false if it was added before.
  mutating func insertAdded(_ port: Port, _ name: RunLoop.Mode) -> Bool {
    addedPorts[ObjectIdentifier(port), default: AddedPort(port: port)].modes.insert(name).inserted
  }

  /// Notes that a port was removed from a mode; returns false if it had not been added.
  mutating func removeAdded(_ port: Port, _ name: RunLoop.Mode) -> Bool {
    guard addedPorts[ObjectIdentifier(port)]?.modes.remove(name) != nil else { return false }
    addedPorts[ObjectIdentifier(port)]?.modesOfSources.remove(name)
    if addedPorts[ObjectIdentifier(port)]?.modes.isEmpty ?? false { addedPorts[ObjectIdentifier(port)] = nil }
    return true
  }

  /// Notes that a port that was added to a mode has not entered it, but brought sources of its own.
  mutating func noteSources(of port: Port, _ name: RunLoop.Mode) {
    guard addedPorts[ObjectIdentifier(port)]?.modes.contains(name) ?? false else { return }
    addedPorts[ObjectIdentifier(port)]?.modesOfSources.insert(name)
  }

  /// Whether a port that was added to a mode brought sources of its own.
  func comesWithSources(_ port: Port, _ name: RunLoop.Mode) -> Bool {
    addedPorts[ObjectIdentifier(port)]?.modesOfSources.contains(name) ?? false
  }

  /// Forgets that a port was added to any mode; returns false if it had not been.
  mutating func removeAdded(_ port: Port) -> Bool { addedPorts.removeValue(forKey: ObjectIdentifier(port)) != nil }

  mutating func die() { isDead = true }
}

/// A loop's table behind its lock.
final class GuardedModeTable: @unchecked Sendable {
  // Sendable: the table is guarded by the lock.
  private let lock = Lock()
  /// The table, for code that holds its lock by ``locked(_:)``.
  @exclusivity(unchecked) var underLock: ModeTable
  private let generation = ForkGeneration.current
  /// The default mode, which every loop has from the beginning.
  let defaultMode: ModeState

  init(mainQueueHandle: MainQueue.Handle? = nil, bell: WakeBell = WakeBell()) {
    var table = ModeTable(mainQueueHandle: mainQueueHandle, bell: bell)
    defaultMode = table.mode(.default)
    self.underLock = table
  }

  /// Whether the loop, if it sleeps, would sleep past a timer.
  ///
  /// Called under the lock that guards the timer, which is this table's.
  @inline(__always)
  func sleepsTooLong(for timer: Timer, in mode: ModeState) -> Bool {
    // Field by field: the whole table would be copied.
    underLock.unmanagedSleepingMode?.toOpaque() == Unmanaged.passUnretained(mode).toOpaque()
      && timer.latestTick < underLock.sleepDeadline
  }

  /// Stops a forked child that uses a loop of its parent.
  @inline(__always)
  func checkFork() { generation.check() }

  /// Whether the loop is of a process that this one was forked from.
  var isOfParent: Bool { generation.isPast }

  /// Runs a closure under the lock, for what the lock guards beside the table, or for the table by ``underLock``.
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
