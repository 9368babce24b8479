// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A service that lets the main loop and another library's loop serve each other without a call.
///
/// A layer above provides it. ``LoadHook/mainLoopIsMade`` notifies that layer when the main loop is made.
package protocol MainLoopService: AnyObject, Sendable {
  /// Whether the loops serve each other once both exist; can be used from any thread.
  var isOn: Bool { get }

  /// Makes the loops serve each other, or stop doing so, from the next run on.
  ///
  /// Can be called from any thread. A host that the main loop already has stays until it is removed.
  func turn(on: Bool)

  /// Sets a host, if one is available now.
  ///
  /// Called on the main loop's thread, when the loop has no host and is about to run, to wait or to look.
  func findHost(for loop: RunLoop)

  /// Notes an item that was added to a mode; called on any thread, with no lock held.
  func itemCame(to mode: RunLoop.Mode, of loop: RunLoop)

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
  func askForHost() {
    guard hostLink == nil, !innermost.isServedByHost else { return }
    mainService?.findHost(for: self)
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
