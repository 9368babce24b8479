// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import Synchronization

// Phases 7 and 11 of the pass: the main dispatch queue, on the main loop.

extension RunLoop {
  /// Events outside the mode's items that a wait has found, for the same pass.
  struct Notices: OptionSet {
    let rawValue: UInt8

    /// The main dispatch queue's notification was consumed, so the queue must be drained.
    static let mainQueue = Notices(rawValue: 1 << 0)
    /// The host has handled one of its own sources.
    static let host = Notices(rawValue: 1 << 1)
  }

  /// Checks, without waiting, whether the main dispatch queue has work, in which case the pass does not wait either.
  ///
  /// The check is skipped in the first pass of a run and in the pass after the queue was drained, so that the queue
  /// alternates with everything else.
  @inline(__always)
  func isMainQueueReady(_ mode: ModeState) -> Bool {
    guard innermost.mayAskMainQueue, isServingMainQueue(mode), MainQueue.takeNotice() else { return false }
    notices.insert(.mainQueue)
    lastSleepBegan = .never
    // The epoll set may have reported the same work.
    table.withLock { _ in mode.pollSet?.isMainQueueReady = false }
    return true
  }

  /// Whether the main dispatch queue has work that can be done now, when the loop is a guest of another library's loop.
  ///
  /// This requires that the mode is common and that the queue is not already being drained. Costs a system call. Must
  /// be used on the main thread.
  package var hasMainQueueWork: Bool { !isDrainingMainQueue && isInCommonMode && MainQueue.hasNotice }

  /// Runs the work queued on the main dispatch queue so far, in a call-out of another library's loop.
  ///
  /// Must be called on the main thread.
  package func runMainQueue() {
    guard MainQueue.takeNotice() else { return }
    isDrainingMainQueue = true
    runLoopIsServicingTheMainDispatchQueue()
    isDrainingMainQueue = false
  }

  /// Runs the work queued on the main dispatch queue so far.
  func drainMainQueue(_ mode: ModeState) -> Served {
    guard isServingMainQueue(mode) else { return .nothing }
    if notices.remove(.mainQueue) == nil {
      guard let set = table.withLock({ _ in mode.pollSet }), set.isMainQueueReady else { return .nothing }
      set.isMainQueueReady = false
      guard MainQueue.takeNotice() else { return .nothing }
    }
    isDrainingMainQueue = true
    calling(CRL_KIND_MAIN_QUEUE, mode, CallNote(hook: .mainQueue)) { runLoopIsServicingTheMainDispatchQueue() }
    isDrainingMainQueue = false
    innermost.mayAskMainQueue = false
    return .source
  }
}
