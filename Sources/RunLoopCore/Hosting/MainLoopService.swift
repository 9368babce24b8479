// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A service that detects whether another library's loop on the same thread has to be served.
package protocol OtherLoopService: AnyObject, Sendable {
  /// Sets a host if one is available and needed in a mode.
  ///
  /// Called on the loop's thread, when the loop has no host and is about to run, wait or poll.
  func findHost(for loop: RunLoop, in mode: RunLoop.Mode)

  /// Returns a descriptor that becomes readable when the other loop receives work in a mode, or `nil` if there is none.
  ///
  /// Called on the loop's thread, which waits without a host.
  func descriptorOfOtherLoop(in mode: RunLoop.Mode) -> Int32?
}

/// A service with which the main loop and another library's loop serve each other automatically.
///
/// A higher layer provides it. In ``LoadHook/mainLoopIsMade``, that layer assigns the service to the main loop before
/// any other thread can access the loop; in ``LoadHook/mainLoopIsKnown``, the service starts its work.
package protocol MainLoopService: OtherLoopService {
  /// Whether the loops serve each other once both exist (thread-safe).
  var isOn: Bool { get }

  /// Turns mutual service on or off, starting with the next run.
  ///
  /// Can be called from any thread. A host that the main loop already has stays until it is removed.
  func turn(on: Bool)

  /// Notes that an item was added to a mode; called on any thread, with no locks held.
  func itemCame(to mode: RunLoop.Mode, of loop: RunLoop)

  /// Notes that a mode has become common; called on any thread, with no locks held.
  func modeBecameCommon(_ mode: RunLoop.Mode, of loop: RunLoop)

  /// Starts or stops serving the other loop in a mode on behalf of an explicit guest; called on the loop's thread.
  func guestBegins(of loop: RunLoop, in mode: RunLoop.Mode)
  func guestEnds(of loop: RunLoop, in mode: RunLoop.Mode)

  /// Notes that a guest was ended and that the one around it, which is about to sleep again, is explicit.
  ///
  /// Called on the loop's thread.
  func returnsToGuest(_ loop: RunLoop)

  /// Stops the main thread's innermost run, for which a stop of the other loop is meant, if it is a run of our loop.
  ///
  /// - Returns: `false` if `other` is a different loop or its own run is the innermost; the caller must then stop it.
  func stopInnermost(of other: AnyObject) -> Bool
}

extension RunLoop {
  /// Searches for a host for the main loop if it has none; must be called on the loop's thread.
  @inline(never)
  func askForHost(in mode: Mode) {
    guard hostLink == nil, !innermost.isServedByHost else { return }
    mainService?.findHost(for: self, in: mode)
  }

  /// The service for another library's loop of the thread (used only on the loop's thread).
  var otherLoop: (any OtherLoopService)? {
    if let mainService { return mainService }
    guard isOnSystemTime, servesOtherLoop else { return nil }
    if threadService == nil { LoadHook.loopLooksForOther.call(self) }
    return threadService
  }

  /// Searches for a host before a wait, and without one makes the wait end when the other library's loop receives
  /// work.
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
      // If this fails, the next wait tries again.
      mode.watchesOtherLoop = (try? set.watchOtherLoop(descriptor)) != nil
      if set.isEmpty { mode.pollSet = nil }
    }
  }

  /// Stops watching the other library's loop, before it watches a descriptor of this loop: neither epoll set may
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

  /// Whether a sleep that found work of the other library's loop must end, because the loop now has to wait in that
  /// loop.
  @inline(never)
  func isDueInOtherLoop(_ mode: ModeState) -> Bool {
    guard hostLink == nil, !innermost.isServedByHost else { return hostLink != nil }
    otherLoop?.findHost(for: self, in: mode.name)
    return hostLink != nil
  }

  /// Notifies the main loop's service that an item was added.
  @inline(__always)
  func tellOfItem(_ mode: Mode) {
    if mainService != nil { mainService?.itemCame(to: mode, of: self) }
  }

  /// Returns the number of sources, ports and timers in a mode; can be called from any thread.
  package func itemCount(of mode: Mode) -> Int {
    table.withLock { $0.modes[mode]?.itemCount.load(ordering: .relaxed) ?? 0 }
  }

  /// Whether the loop is running and its innermost run is not an automatic guest's (thread-safe).
  package var isInnermostItself: Bool {
    currentMode != nil && !isServedElsewhere.load(ordering: .acquiring)
  }

  /// Whether the loop's innermost guest is explicit, apart from a sleep on behalf of its host.
  ///
  /// If so, the guest determines what serves the loop. Used only on the loop's thread.
  package var isExplicitGuest: Bool {
    var next = guest
    while let guest = next, guest.isSleep { next = guest.outerGuest }
    return next.map { !$0.isAutomatic } ?? false
  }

  /// Whether the loop is an explicit guest at any nesting depth (used only on the loop's thread).
  package var hasExplicitGuest: Bool {
    var next = guest
    while let guest = next {
      if !guest.isAutomatic { return true }
      next = guest.outerGuest
    }
    return false
  }
}
