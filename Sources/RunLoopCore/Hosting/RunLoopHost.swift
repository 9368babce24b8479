// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

/// A loop of another library in which one of our loops waits, so that what belongs to the other is served too.
///
/// All functions are called on the loop's thread.
package protocol RunLoopHost: AnyObject, Sendable {
  /// Waits in a mode until the gate opens or the host has handled something of its own.
  ///
  /// The host's call-outs may run our loop, and so wait again.
  func wait(in mode: HostedMode) -> HostReport

  /// Serves, without waiting, everything of the host's own that is ready in a mode.
  func look(in mode: HostedMode) -> HostReport

  /// Whether something of the host's own keeps a mode alive.
  func keepsAlive(_ mode: HostedMode) -> Bool

  /// Reports what is left of the host's own after a run that it has not kept alive.
  func runHasFinished(_ mode: HostedMode, of loop: RunLoop)

  /// Ends the hosting permanently: once a wait in progress has returned, no loop waits here any more.
  func end()
}

/// A mode of ours as it is described to a host.
package struct HostedMode: Sendable {
  package let name: RunLoop.Mode
  package let isCommon: Bool
  /// Whether the run that waits ends after a source was handled, one of the host's included.
  ///
  /// Otherwise the host may handle any number of its own sources in one wait.
  package let endsAfterSource: Bool
  /// Whether the run that waits, or looks, has done neither before.
  package let isFirstWait: Bool
  /// How many runs are active, including this one.
  package let depth: Int
  /// Whether the run, or the one that is about to begin, has no time limit.
  package let isWithoutLimit: Bool

  /// Makes a description of a mode; the default values are for a mode that no run is in.
  package init(
    name: RunLoop.Mode, isCommon: Bool = false, endsAfterSource: Bool = true, isFirstWait: Bool = true,
    depth: Int = .max, isWithoutLimit: Bool = false
  ) {
    self.name = name
    self.isCommon = isCommon
    self.endsAfterSource = endsAfterSource
    self.isFirstWait = isFirstWait
    self.depth = depth
    self.isWithoutLimit = isWithoutLimit
  }
}

/// What has happened in a host.
package struct HostReport: OptionSet, Sendable {
  package let rawValue: UInt8

  package init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// A source of the host's own was handled.
  package static let handledSource = HostReport(rawValue: 1 << 0)
  /// The host's loop was stopped.
  package static let stopped = HostReport(rawValue: 1 << 1)
  /// The host can no longer wait.
  package static let isGone = HostReport(rawValue: 1 << 2)
  /// The host has made a pass of its own, after which nothing in either loop keeps the mode alive.
  package static let isEmptied = HostReport(rawValue: 1 << 3)
}

/// A host, and the gate that it watches.
struct HostLink {
  let host: any RunLoopHost
  let gate: Gate
  /// Whether nobody asked for the host; such a host gives way to one that somebody asks for.
  let isAutomatic: Bool
}

// Beginning and ending. Called on the loop's thread, except for queries.
extension RunLoop {
  /// Makes every wait of the loop a wait in a host from now on; if the loop has a host, that one stays.
  ///
  /// - Parameters:
  ///   - isAutomatic: Whether the host gives way to a guest that is made explicitly.
  ///   - sparingDescriptors: How many descriptors the host needs and whose lack it cannot report.
  ///   - makeHost: Makes the host, with the gate that the host watches edge-triggered.
  package func setHost(
    isAutomatic: Bool = false, sparingDescriptors: Int = 0, _ makeHost: (Gate) -> any RunLoopHost
  ) throws(RunLoopError) {
    try checkOwnThread()
    if let link = hostLink {
      if !isAutomatic { hostLink = HostLink(host: link.host, gate: link.gate, isAutomatic: false) }
      return
    }
    guard !takesNoItems else { throw .loopHasEnded }
    guard !hasExplicitGuest else { throw .isGuest }
    guard waiter is SystemWaiter else { throw .hasVirtualTime }
    let gate: Gate
    do throws(SystemError) {
      gate = try Gate(keepsTime: true, isWatchedByEdge: true)
      try makeBell()
      try OwnedDescriptor.requireSpare(sparingDescriptors)
    } catch {
      throw .cannotBeHosted(error)
    }
    forgetOtherLoop()
    let host = makeHost(gate)
    hostLink = HostLink(host: host, gate: gate, isAutomatic: isAutomatic)
    table.withLock { table in
      table.host = host
      table.giveUpMainQueue()
    }
  }

  /// Lets the loop wait by itself again.
  package func removeHost() {
    requireOwnThread()
    guard let link = hostLink else { return }
    let failure = table.withLock { $0.takeBackMainQueue() }
    dropHost()
    // A wait in progress in the host returns.
    link.gate.open()
    if let failure {
      Diagnostic.mainQueue.report(
        "the main dispatch queue is not served in a mode of the main run loop: \(failure); its next run tries again")
    }
  }

  /// Ends the host with the loop.
  func dropHost() {
    guard let link = hostLink else { return }
    link.gate.isRetired = true
    hostLink = nil
    table.withLock { $0.host = nil }
    link.host.end()
  }

  /// The host in which the loop waits; can be used from any thread.
  package var host: (any RunLoopHost)? { table.withLock { $0.host } }
}

// Waiting. The loop's thread.
extension RunLoop {
  /// Waits in the host, or only looks.
  @inline(never)
  func waitInHost(_ mode: ModeState, polls: Bool) {
    guard let link = hostLink else { return }
    if polls || !sleep(mode, in: link) {
      lookAtDescriptors(mode)
      if hostLink != nil {
        let report = link.host.look(in: hostedMode(mode))
        innermost.hasWaitedInHost = true
        note(report)
      }
    }
  }

  /// Sleeps in the host until there is a reason for a pass; returns false if there already was one.
  private func sleep(_ mode: ModeState, in link: HostLink) -> Bool {
    var hasWaited = false
    while !link.gate.isRetired {
      let hosted = hostedMode(mode)
      guard fallAsleep(mode, at: link.gate) else { return hasWaited }
      hasWaited = true
      innermost.hasWaitedInHost = true
      let report = link.host.wait(in: hosted)
      let before = awaken()
      noteCause(before.cause, mode, at: link.gate)
      note(report)
      if before.isWoken || !report.isEmpty { return true }
    }
    return hasWaited
  }

  /// Notes what has ended a sleep in the host, unless a descriptor was ready first.
  private func noteCause(_ cause: WakeState.Cause, _ mode: ModeState, at gate: Gate) {
    innermost.wakeCause = cause
    guard cause != .unknown, mode.isWatching.load(ordering: .relaxed), gate.wasOpenedByEvent else { return }
    lookAtDescriptors(mode)
    // The event may have been the loop's own bell.
    if table.withLock({ _ in mode.pollSet?.beganWithEvent ?? false }) { innermost.wakeCause = .unknown }
  }

  private func note(_ report: HostReport) {
    if report.contains(.handledSource) { notices.insert(.host) }
    if report.contains(.stopped) { _ = stopFlag.stop() }
    if report.contains(.isGone) { removeHost() }
  }

  private func hostedMode(_ mode: ModeState) -> HostedMode {
    HostedMode(
      name: mode.name, isCommon: mode.isCommon.load(ordering: .relaxed), endsAfterSource: innermost.returnsAfterSource,
      isFirstWait: !innermost.hasWaitedInHost, depth: innermost.depth,
      isWithoutLimit: beginsWithoutLimit ?? (innermost.deadline == .never && !innermost.polls))
  }

  /// Whether the loop waits in a host that has something of its own in the mode.
  @inline(never)
  func isKeptAliveByHost(_ mode: ModeState) -> Bool {
    // In a guest's pass the host runs, and keeps itself alive.
    guard !innermost.isServedByHost else { return false }
    return hostLink?.host.keepsAlive(hostedMode(mode)) ?? false
  }

  /// Whether a mode that does not exist yet is one of the host's.
  func isModeOfHost(_ name: Mode) -> Bool {
    hostLink?.host.keepsAlive(HostedMode(name: name)) ?? false
  }
}
