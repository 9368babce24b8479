// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// What lets the main loop and another library's serve each other without a call.
///
/// A layer above has it, which is notified of the main loop when that is made, by ``LoadHook/mainLoopIsMade``.
package protocol MainLoopService: AnyObject, Sendable {
  /// Whether the loops serve each other, once both are there. Any thread.
  var isOn: Bool { get }

  /// Lets the loops serve each other, or not any more, from the next run on.
  ///
  /// Any thread. A host that the main loop has stays until it is removed.
  func turn(on: Bool)

  /// Sets a host, if there is one to be found now.
  ///
  /// The main loop has none, and is about to run, to wait or to look. On its thread.
  func findHost(for loop: RunLoop)

  /// Takes note of an item that was added to a mode. Any thread, with no lock held.
  func itemCame(to mode: RunLoop.Mode, of loop: RunLoop)

  /// Stops the innermost run of the main thread if that is ours, as whoever stops the other library's loop means it.
  ///
  /// - Returns: False if that loop is another one, or its run is the innermost: then it is to be stopped itself.
  func stopInnermost(of other: AnyObject) -> Bool
}

extension RunLoop {
  /// Looks for a host of the main loop, if it has none; the loop's thread.
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

  /// How many sources, ports and timers are in a mode; any thread.
  package func itemCount(of mode: Mode) -> Int {
    table.withLock { $0.modes[mode]?.itemCount.load(ordering: .relaxed) ?? 0 }
  }

  /// Whether a run of the loop is active, and the innermost is no guest's that stands for somebody else's; any thread.
  package var isInnermostItself: Bool {
    currentMode != nil && !isServedElsewhere.load(ordering: .acquiring)
  }

  /// Whether somebody has made the loop a guest, at whatever depth; the loop's thread.
  package var hasExplicitGuest: Bool {
    var next = guest
    while let guest = next {
      if !guest.isAutomatic { return true }
      next = guest.outerGuest
    }
    return false
  }
}
