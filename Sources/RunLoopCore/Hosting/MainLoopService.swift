// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A service that finds out whether the loop of another library on the same thread has to be served.
package protocol OtherLoopService: AnyObject, Sendable {
  /// Sets a host, if one is available now and needed in a mode.
  ///
  /// Called on the loop's thread, when the loop has no host and is about to run, to wait or to look.
  func findHost(for loop: RunLoop, in mode: RunLoop.Mode)

  /// A descriptor that becomes readable when the other library's loop is given something to do in a mode, or nil if
  /// there is none.
  ///
  /// Called on the loop's thread, which waits without a host.
  func descriptorOfOtherLoop(in mode: RunLoop.Mode) -> Int32?
}

/// A service that lets the main loop and another library's loop serve each other without a call.
///
/// A layer above provides it. ``LoadHook/mainLoopIsMade`` lets that layer give the main loop its service before any
/// other thread knows the loop, and with ``LoadHook/mainLoopIsKnown`` the service begins its work.
package protocol MainLoopService: OtherLoopService {
  /// Whether the loops serve each other once both exist; can be used from any thread.
  var isOn: Bool { get }

  /// Makes the loops serve each other, or stop doing so, from the next run on.
  ///
  /// Can be called from any thread. A host that the main loop already has stays until it is removed.
  func turn(on: Bool)

  /// Notes an item that was added to a mode; called on any thread, with no lock held.
  func itemCame(to mode: RunLoop.Mode, of loop: RunLoop)

  /// Serves the other library's loop in a mode as long as the main loop is a guest that was made explicitly, or no
  /// longer; called on the loop's thread.
  func guestBegins(of loop: RunLoop, in mode: RunLoop.Mode)
  func guestEnds(of loop: RunLoop, in mode: RunLoop.Mode)

  /// Stops the innermost run of the main thread if it is a run of ours: a stop of the other library's loop is meant for
  /// it.
  ///
  /// - Returns: False if `other` is a different loop, or if its run is the innermost: then that loop itself is to be
  ///   stopped.
  func stopInnermost(of other: AnyObject) -> Bool
}

extension RunLoop {
  /// Looks for a host of the main loop, if it has none; called on the loop's thread.
  @inline(never)
  func askForHost(in mode: Mode) {
    guard hostLink == nil, !innermost.isServedByHost else { return }
    mainService?.findHost(for: self, in: mode)
  }

  /// The service for another library's loop of the thread; called on the loop's thread.
  var otherLoop: (any OtherLoopService)? {
    if let mainService { return mainService }
    guard isOnSystemTime, servesOtherLoop else { return nil }
    if threadService == nil { LoadHook.loopLooksForOther.call(self) }
    return threadService
  }

  /// Looks for a host before a wait, and lets a wait without one end when the other library's loop is given something
  /// to do.
  @inline(never)
  func prepareForOtherLoop(_ mode: ModeState) {
    guard hostLink == nil, !innermost.isServedByHost, let otherLoop else { return }
    otherLoop.findHost(for: self, in: mode.name)
    if hostLink == nil, guest == nil, !mode.watchesOtherLoop { watch(otherLoop, in: mode) }
  }

  private func watch(_ otherLoop: any OtherLoopService, in mode: ModeState) {
    guard let descriptor = otherLoop.descriptorOfOtherLoop(in: mode.name) else { return }
    table.withLock { table in
      guard let set = try? table.pollSet(of: mode) else { return }
      // If it fails, the next wait tries again.
      mode.watchesOtherLoop = (try? set.watchOtherLoop(descriptor)) != nil
      if set.isEmpty { mode.pollSet = nil }
    }
  }

  /// Stops watching the other library's loop, before that one watches a descriptor of this loop: neither set may
  /// contain the other.
  func forgetOtherLoop() {
    table.withLock { table in
      for mode in table.modes.values where mode.watchesOtherLoop {
        mode.watchesOtherLoop = false
        guard let set = mode.pollSet else { continue }
        set.forgetOtherLoop()
        if set.isEmpty { mode.pollSet = nil }
      }
    }
  }

  /// Whether a sleep that has found something of the other library's loop is over, because the loop has to wait in that
  /// one.
  @inline(never)
  func isDueInOtherLoop(_ mode: ModeState) -> Bool {
    guard hostLink == nil, !innermost.isServedByHost else { return hostLink != nil }
    otherLoop?.findHost(for: self, in: mode.name)
    return hostLink != nil
  }

  /// Notifies the main loop's service of an item that was added.
  @inline(__always)
  func tellOfItem(_ mode: Mode) {
    if mainService != nil { mainService?.itemCame(to: mode, of: self) }
  }

  /// The number of sources, ports and timers in a mode; can be called from any thread.
  package func itemCount(of mode: Mode) -> Int {
    table.withLock { $0.modes[mode]?.itemCount.load(ordering: .relaxed) ?? 0 }
  }

  /// Whether a run of the loop is active and the innermost is not an automatic guest's; can be used from any thread.
  package var isInnermostItself: Bool {
    currentMode != nil && !isServedElsewhere.load(ordering: .acquiring)
  }

  /// Whether the loop was made a guest explicitly, at whatever depth; used on the loop's thread.
  package var hasExplicitGuest: Bool {
    var next = guest
    while let guest = next {
      if !guest.isAutomatic { return true }
      next = guest.outerGuest
    }
    return false
  }
}
