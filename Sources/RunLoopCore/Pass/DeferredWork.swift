// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// What a layer above has put off to a later stage of the loop's runs, and does from observers.
///
/// Observers alone could not promise that it is done before the loop sleeps: one that is added at a stage is called
/// from the next one on, and another may come after it. So the loop asks before it sleeps. The loop's thread only.
package protocol DeferredWork: AnyObject {
  /// Whether something waits for a mode, or for the common modes if it is one.
  ///
  /// It must run no code of a user's, and the mode must come to run it if the loop makes one pass after the other.
  func isWaiting(for mode: RunLoop.Mode, isCommon: Bool) -> Bool

  /// The loop has ended: what is left is dropped.
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
  /// Costs a system call if the mode watches descriptors. The loop's thread only, in an observer's call-out.
  package var isIdle: Bool {
    guard let mode = innermost.mode, !word.state.isWoken, !hasBlock(mode, exactly: true) else { return false }
    // What the main dispatch queue has comes first, though a host drains it.
    if hostLink != nil, RunLoop.mainIfMade === self, isInCommonMode, MainQueue.hasNotice { return false }
    lookAtDescriptors(mode)
    return table.withLock { _ in
      if mustGoOn(mode) { return false }
      if let set = mode.pollSet, hasReady(set, mode) { return false }
      let deadline = min(innermost.deadline, mode.timers.wakeTick)
      return deadline == .never || deadline > tickNow
    }
  }

  /// Whether the mode of the innermost run is a common one; the loop's thread only.
  package var isInCommonMode: Bool { innermost.mode?.isCommon.load(ordering: .relaxed) ?? false }

  /// Counts something that was rejected; any thread.
  package func countRefusal() { counters.refusals.wrappingAdd(1, ordering: .relaxed) }

  /// Counts notifications that were never posted; any thread.
  package func countDroppedNotifications(_ count: Int) {
    counters.droppedNotifications.wrappingAdd(count, ordering: .relaxed)
  }
}
