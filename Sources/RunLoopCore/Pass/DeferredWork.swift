// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Work that a layer above has postponed to a later stage of the loop's runs, and does from observers.
///
/// Observers alone could not guarantee that it is done before the loop sleeps: an observer that is added at a stage is
/// called from the next stage on, and another may come after it. So the loop asks before it sleeps. Used on the loop's
/// thread only.
package protocol DeferredWork: AnyObject {
  /// Whether something waits for a mode, or for the common modes if it is one.
  ///
  /// It must run no user code, and the mode must get to run the work if the loop makes one pass after the other.
  func isWaiting(for mode: RunLoop.Mode, isCommon: Bool) -> Bool

  /// Called when the loop has ended: the remaining work is dropped.
  func end()
}

extension RunLoop {
  /// Whether deferred work keeps the loop from sleeping in a mode.
  @inline(__always)
  func hasDeferredWork(_ mode: ModeState) -> Bool {
    guard let deferredWork else { return false }
    return deferredWork.isWaiting(for: mode.name, isCommon: mode.isCommon.load(ordering: .relaxed))
  }

  func endDeferredWork() { deferredWork.take()?.end() }

  /// Whether the innermost run, which has reached the stage before it waits, would now wait: nothing is ready, and it
  /// is not about to end.
  ///
  /// It costs a system call if the mode watches descriptors. Used on the loop's thread only, in an observer's call-out.
  package var isIdle: Bool {
    guard let mode = innermost.mode, !word.state.isWoken else { return false }
    takeArrivals(exactly: true)
    guard !hasBlock(mode) else { return false }
    // The work of the main dispatch queue comes first, even if a host drains it.
    if hostLink != nil, RunLoop.mainIfMade === self, isInCommonMode, MainQueue.hasNotice { return false }
    lookAtDescriptors(mode)
    return table.withLock { _ in
      if mustGoOn(mode) { return false }
      if let set = mode.pollSet, hasReady(set, mode) { return false }
      let deadline = min(innermost.deadline, mode.timers.wakeTick)
      return deadline == .never || deadline > tickNow
    }
  }

  /// Whether the mode of the innermost run is a common one; used on the loop's thread only.
  package var isInCommonMode: Bool { innermost.mode?.isCommon.load(ordering: .relaxed) ?? false }

  /// Counts an item or block that was rejected; can be called from any thread.
  package func countRejection() { counters.rejections.wrappingAdd(1, ordering: .relaxed) }

  /// Counts notifications that were never posted; can be called from any thread.
  package func countDroppedNotifications(_ count: Int) {
    counters.droppedNotifications.wrappingAdd(count, ordering: .relaxed)
  }
}
