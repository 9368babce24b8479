// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Work that a higher layer has postponed to a later activity and performs from observers.
///
/// Observers alone could not guarantee that the work is done before the loop sleeps: an observer added during an
/// activity is first called at the next one, and another observer may run after it. The loop therefore asks before it
/// sleeps. Must be used on the loop's thread.
package protocol DeferredWork: AnyObject {
  /// Whether work is pending for a mode, or for the common modes if it is one.
  ///
  /// It must not run user code, and repeated passes in the mode must eventually perform the work.
  func isWaiting(for mode: RunLoop.Mode, isCommon: Bool) -> Bool

  /// Called when the loop has ended, to drop the remaining work.
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

  /// Whether the innermost run, at its before-waiting activity, would now wait: nothing is ready, and it is not about
  /// to end.
  ///
  /// Costs a system call if the mode watches descriptors. Must be used on the loop's thread, in an observer's call-out.
  package var isIdle: Bool {
    guard let mode = innermost.mode, !word.state.isWoken else { return false }
    takeArrivals(exactly: true)
    guard !hasBlock(mode) else { return false }
    // The main dispatch queue's work is performed first, even if a host drains the queue.
    if hostLink != nil, RunLoop.mainIfMade === self, isInCommonMode, MainQueue.hasNotice { return false }
    lookAtDescriptors(mode)
    return table.withLock { _ in
      if mustGoOn(mode) { return false }
      if let set = mode.pollSet, hasReady(set, mode) { return false }
      let deadline = min(innermost.deadline, mode.timers.wakeTick)
      return deadline == .never || deadline > tickNow
    }
  }

  /// Whether the mode of the innermost run is a common one (used only on the loop's thread).
  package var isInCommonMode: Bool { innermost.mode?.isCommon.load(ordering: .relaxed) ?? false }

  /// Counts a rejected item or block; can be called from any thread.
  package func countRejection() { counters.rejections.wrappingAdd(1, ordering: .relaxed) }

  /// Counts notifications that were never posted; can be called from any thread.
  package func countDroppedNotifications(_ count: Int) {
    counters.droppedNotifications.wrappingAdd(count, ordering: .relaxed)
  }
}
