// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import Synchronization

/// Another library's loop in which one of our loops waits, so that both are served.
///
/// All methods are called on the loop's thread.
package protocol RunLoopHost: AnyObject, Sendable {
  /// Waits in a mode until the gate opens or the host has handled one of its own sources.
  ///
  /// The host's call-outs may run our loop and thereby wait again.
  func wait(in mode: HostedMode) -> HostReport

  /// Serves, without waiting, the host's own sources that are ready in a mode.
  func look(in mode: HostedMode) -> HostReport

  /// Whether the host's own items keep a mode alive.
  func keepsAlive(_ mode: HostedMode) -> Bool

  /// Reports the host's remaining items after a run that they did not keep alive.
  func runHasFinished(_ mode: HostedMode, of loop: RunLoop)

  /// Ends the hosting permanently; no loop waits here once a wait in progress has returned.
  func end()
}

/// A description of one of our modes for a host.
package struct HostedMode: Sendable {
  package let name: RunLoop.Mode
  package let isCommon: Bool
  /// Whether the waiting run ends after one source was handled, including the host's.
  ///
  /// Otherwise, the host may handle any number of its own sources in one wait.
  package let endsAfterSource: Bool
  /// Whether the run has neither waited nor polled before.
  package let isFirstWait: Bool
  /// The number of active runs, including this one.
  package let depth: Int
  /// Whether the run, or the one about to begin, has no time limit.
  package let isWithoutLimit: Bool

  /// Creates a description of a mode, by default of one without an active run.
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

/// The events that occurred in a host.
package struct HostReport: OptionSet, Sendable {
  package let rawValue: UInt8

  package init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// One of the host's own sources was handled.
  package static let handledSource = HostReport(rawValue: 1 << 0)
  /// The host's loop was stopped.
  package static let stopped = HostReport(rawValue: 1 << 1)
  /// The host can no longer wait.
  package static let isGone = HostReport(rawValue: 1 << 2)
  /// The host has made a pass of its own, after which nothing in either loop keeps the mode alive.
  package static let isEmptied = HostReport(rawValue: 1 << 3)
}

/// A host with the gate that it watches.
struct HostLink {
  let host: any RunLoopHost
  let gate: Gate
  /// Whether the host was set automatically and may be replaced by one that is set explicitly.
  let isAutomatic: Bool
}

// Setting and removing a host. These must be called on the loop's thread, except for queries.
extension RunLoop {
  /// Makes the loop wait in a host from now on, unless it has a host already.
  ///
  /// - Parameters:
  ///   - isAutomatic: Whether an explicit guest replaces the host. Defaults to `false`.
  ///   - sparingDescriptors: The number of descriptors that the host needs without being able to report their lack.
  ///     Defaults to 0.
  ///   - makeHost: Creates the host from the gate that the host watches edge-triggered.
  package func setHost(
    isAutomatic: Bool = false, sparingDescriptors: Int = 0, _ makeHost: (Gate) -> any RunLoopHost
  ) throws(RunLoopError) {
    try checkOwnThread()
    guard !isExplicitGuest, isAutomatic || !hasExplicitGuest else { throw .isGuest }
    if let link = hostLink {
      if !isAutomatic { hostLink = HostLink(host: link.host, gate: link.gate, isAutomatic: false) }
      return
    }
    guard !takesNoItems else { throw .loopHasEnded }
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

  /// Ends the hosting when the loop ends.
  func dropHost() {
    guard let link = hostLink else { return }
    link.gate.isRetired = true
    hostLink = nil
    table.withLock { $0.host = nil }
    link.host.end()
  }

  /// The host in which the loop waits (thread-safe).
  package var host: (any RunLoopHost)? { table.withLock { $0.host } }
}

// Waiting in a host. These must be called on the loop's thread.
extension RunLoop {
  /// Waits in the host, or only polls.
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

  /// Sleeps in the host until there is a reason for a pass, and returns `false` if there already was one.
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

  /// Notes what ended a sleep in the host, unless a descriptor was ready first.
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

  /// Whether the loop waits in a host whose own items keep the mode alive.
  @inline(never)
  func isKeptAliveByHost(_ mode: ModeState) -> Bool {
    // During a guest's pass, the host is running and keeps itself alive.
    guard !innermost.isServedByHost else { return false }
    return hostLink?.host.keepsAlive(hostedMode(mode)) ?? false
  }

  /// Whether a mode that this loop does not have yet is one of the host's.
  func isModeOfHost(_ name: Mode) -> Bool {
    hostLink?.host.keepsAlive(HostedMode(name: name)) ?? false
  }
}
