// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A loop of another library in which one of ours waits, so that what belongs to the other is served too.
///
/// Every call comes on the loop's thread.
package protocol RunLoopHost: AnyObject, Sendable {
  /// Waits in a mode until the gate opens or something of the host's own was handled.
  ///
  /// What the host calls out meanwhile may run our loop, and so wait again.
  func wait(in mode: HostedMode) -> HostReport

  /// Serves, without waiting, what of the host's own is ready in a mode.
  func look(in mode: HostedMode) -> HostReport

  /// Whether something of the host's own keeps a mode alive.
  func keepsAlive(_ mode: HostedMode) -> Bool

  /// Ends the hosting permanently: nobody waits here any more, once the wait that goes on has returned.
  func end()
}

/// A mode of ours as a host is notified of it.
package struct HostedMode: Sendable {
  package let name: RunLoop.Mode
  package let isCommon: Bool
  /// Whether the run that waits is to end when a source was handled, the host's too.
  ///
  /// Otherwise the host may handle any number of its own in one wait.
  package let endsAfterSource: Bool
  /// Whether the run that waits, or looks, has done neither before.
  package let isFirstWait: Bool
  /// How many runs are active, this one among them.
  package let depth: Int

  /// A mode as a run of nobody's has it.
  package init(
    name: RunLoop.Mode, isCommon: Bool = false, endsAfterSource: Bool = true, isFirstWait: Bool = true,
    depth: Int = .max
  ) {
    self.name = name
    self.isCommon = isCommon
    self.endsAfterSource = endsAfterSource
    self.isFirstWait = isFirstWait
    self.depth = depth
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
  /// Somebody has stopped the host's loop.
  package static let stopped = HostReport(rawValue: 1 << 1)
  /// The host can wait no more.
  package static let isGone = HostReport(rawValue: 1 << 2)
  /// The host has made a pass of its own, after which nothing in either loop keeps the mode alive.
  package static let isEmptied = HostReport(rawValue: 1 << 3)
}

/// A host, and the gate that it watches.
struct HostLink {
  let host: any RunLoopHost
  let gate: Gate
  /// Whether nobody has asked for the host, so that it gives way to who asks for another.
  let isAutomatic: Bool
}

// Beginning and ending. The loop's thread, but for what is asked.
extension RunLoop {
  /// Lets every wait of the loop be one of a host from now on; nothing if it has one.
  ///
  /// - Parameters:
  ///   - isAutomatic: Whether the host is to give way to a guest that somebody makes.
  ///   - makeHost: Makes the host, with the gate that it is to watch by the edge.
  package func setHost(isAutomatic: Bool = false, _ makeHost: (Gate) -> any RunLoopHost) throws(RunLoopError) {
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
    } catch {
      throw .cannotBeHosted(error)
    }
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
    // A wait that goes on in the host returns.
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

  /// The host in which the loop waits; any thread.
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

  /// Sleeps in the host until there is a reason for a pass; false if there was one at once.
  private func sleep(_ mode: ModeState, in link: HostLink) -> Bool {
    var hasWaited = false
    while !link.gate.isRetired {
      let hosted = hostedMode(mode)
      guard fallAsleep(mode, at: link.gate) else { return hasWaited }
      hasWaited = true
      innermost.hasWaitedInHost = true
      let report = link.host.wait(in: hosted)
      let isWoken = awaken()
      note(report)
      if isWoken || !report.isEmpty { return true }
    }
    return hasWaited
  }

  private func note(_ report: HostReport) {
    if report.contains(.handledSource) { notices.insert(.host) }
    if report.contains(.stopped) { table.withLock { _ in _ = stopFlag.stop() } }
    if report.contains(.isGone) { removeHost() }
  }

  private func hostedMode(_ mode: ModeState) -> HostedMode {
    HostedMode(
      name: mode.name, isCommon: mode.isCommon.load(ordering: .relaxed), endsAfterSource: innermost.returnsAfterSource,
      isFirstWait: !innermost.hasWaitedInHost, depth: innermost.depth)
  }

  /// Whether the loop waits in a host that has something of its own in the mode.
  @inline(never)
  func isKeptAliveByHost(_ mode: ModeState) -> Bool {
    // In a guest's pass the host runs, and keeps itself alive.
    guard !innermost.isServedByHost else { return false }
    return hostLink?.host.keepsAlive(hostedMode(mode)) ?? false
  }

  /// Whether a mode that is not made yet is one of the host's.
  func isModeOfHost(_ name: Mode) -> Bool {
    hostLink?.host.keepsAlive(HostedMode(name: name)) ?? false
  }
}
